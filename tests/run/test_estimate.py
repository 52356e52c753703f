"""What a sweep may cost, before it runs."""

from __future__ import annotations

import pytest

from batchlab.run.estimate import estimate_sweep
from batchlab.run.pack_size_cache import Calibration, recall, remember


def test_the_cost_is_trials_times_steps_times_the_measured_time(make_digits):
    sweep = make_digits({"sweep.max_examples": 640})
    for batch_size, seconds in ((16, 1e-3), (64, 4e-3)):
        remember(sweep.study(batch_size), Calibration(4, seconds))

    small, large = estimate_sweep(sweep, None)

    assert (small.batch_size, small.trials, small.attempts, small.max_steps) == (16, 6, 30, 40)
    assert small.max_seconds == pytest.approx(6 * 40 * 1e-3)
    assert (large.batch_size, large.max_steps) == (64, 10)
    assert large.max_seconds == pytest.approx(6 * 10 * 4e-3)
    assert set(small.first_point) == {"learning_rate", "momentum"}


def test_what_is_not_known_is_measured_and_remembered(make_nqm):
    sweep = make_nqm({"sweep.batch_sizes": [16]})

    (estimate,) = estimate_sweep(sweep, None)

    assert 0 < estimate.seconds_per_trial_step < 1
    assert recall(sweep.study(16)).seconds_per_trial_step == estimate.seconds_per_trial_step
