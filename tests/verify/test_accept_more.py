"""Edits of a user's own: accepted where they agree with all the rest, refused in a line where they do not."""

from __future__ import annotations

import pytest

from batchlab.errors import BatchlabError, InputError
from batchlab.store.lab import Lab
from batchlab.verify.accept import accept_edit
from batchlab.verify.check import verify_lab


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_an_edit_that_is_accepted_counts(copy):
    lab = copy("two")
    path = lab / "sweeps" / "quad" / "4" / "trials.json"
    edit(path, '"wall_seconds": ', '"wall_seconds": 1')

    accept_edit(Lab.open(lab), path)

    study = Lab.open(lab).study_folder("quad", 4)
    assert verify_lab(lab).is_sound
    assert study.record().edited == ("trials.json",)
    assert study.trials()[0].wall_seconds >= 1


def test_an_edit_that_does_not_agree_with_the_rest_is_refused(copy):
    lab = copy("two")
    path = lab / "sweeps" / "quad" / "4" / "trials.json"
    edit(path, '"learning_rate": ', '"learning_rate": 1')

    with pytest.raises(BatchlabError, match="has other metaparameters than its point"):
        accept_edit(Lab.open(lab), path)


def test_a_link_that_leads_to_itself_ended_in_a_traceback(copy):
    lab = copy("two")
    (lab / "loop").symlink_to("loop")

    for path in (lab / "loop", lab / "loop" / "trials.json"):
        with pytest.raises(InputError):
            accept_edit(Lab.open(lab), path)
