"""What a dry run says its expectation goes by."""

from __future__ import annotations

import pytest

import batchlab
from batchlab.cli.dry_run import _sentences
from batchlab.run.estimate import StudyEstimate
from batchlab.run.pilot import Pilot


def estimate(by, expected_from=None, trials=8):
    """Return a study that takes an hour, expected by this; its pilot had so many trials."""
    return StudyEstimate(
        batch_size=64,
        trials=4,
        replicates=0,
        attempts=4,
        max_steps=1000,
        first_point={},
        seconds_per_trial_step=0.9,
        max_seconds=7200.0,
        expected_steps=500,
        expected_seconds=3600.0,
        expected_from=expected_from,
        expected_by=by,
        pilot=Pilot(trials, 20, None, None, 0.0),
    )


@pytest.mark.parametrize(
    ("studies", "grounds"),
    [
        ([estimate("pilot", trials=3), estimate("pilot", 64)], "a pilot of up to 8 trials"),
        ([estimate("published", 64)], "published steps"),
        ([estimate("lab", 16), estimate("lab", 16)], "what is finished in the lab"),
        ([estimate("published", 64), estimate("pilot")], "a pilot of up to 8 trials and published steps"),
    ],
)
def test_the_sources_that_were_used_are_named(studies, grounds):
    sentence = _sentences(batchlab.load_sweep("nqm"), studies, num_workers=1)[-1]

    assert f" expected with 1 worker, going by {grounds}; at most " in sentence
