from __future__ import annotations

import numpy as np
import pytest

from batchlab.analysis import Interval, fit_critical_batch

SIZES = [2**k for k in range(12)]


def rows_on_a_curve(make_row, s_min, e_min, sizes=SIZES, num_trials=32, spread=0.3):
    """Trials whose steps exceed the curve by an exponential share, so that the best is close to it."""
    rng = np.random.default_rng(0)
    excess = 1 + spread * rng.exponential(size=(len(sizes), num_trials))
    return [
        make_row(size, [round(steps) for steps in (s_min + e_min / size) * factors], end_step=10**6)
        for size, factors in zip(sizes, excess, strict=True)
    ]


def test_noisy_trials_give_the_curve_and_an_interval_that_holds_it(make_row):
    fit = fit_critical_batch(rows_on_a_curve(make_row, 4000, 409600))

    low, high = fit.b_crit_ci.low, fit.b_crit_ci.high
    assert low < 102.4 < high
    assert low < fit.b_crit < high
    assert pytest.approx(fit.s_min, rel=0.05) == 4000
    assert pytest.approx(fit.e_min, rel=0.05) == 409600
    assert fit.warning is None
    assert fit.censored == ()
    np.testing.assert_allclose(fit.steps_at(np.array([fit.b_crit])), 2 * fit.s_min)


def test_fewer_than_three_batch_sizes_give_no_fit(make_row):
    assert fit_critical_batch([make_row(1, [100, 101]), make_row(2, [60, 61]), make_row(4)]) is None


def test_a_goal_met_before_the_first_update_gives_no_fit(make_row):
    assert fit_critical_batch([make_row(size, [0, 0]) for size in (1, 2, 4, 8)]) is None


def test_perfect_scaling_alone_gives_a_lower_bound(make_row):
    fit = fit_critical_batch(rows_on_a_curve(make_row, 1e-9, 10**6, sizes=[1, 2, 4, 8, 16]))

    assert fit.b_crit is None
    assert fit.b_crit_ci == Interval(32, None)  # no further than twice the largest batch size
    assert "Only perfect scaling was seen" in fit.warning


def test_steps_that_fall_faster_than_perfect_scaling_give_a_lower_bound(make_row):
    fit = fit_critical_batch([make_row(size, [round(1e5 / size**1.3)] * 4) for size in (1, 2, 4, 8, 16)])

    assert (fit.b_crit, fit.b_crit_ci.high) == (None, None)
    assert 1 < fit.b_crit_ci.low <= 32
    assert "far beyond those tried: it has a lower bound only" in fit.warning


def test_flat_steps_give_an_upper_bound(make_row):
    fit = fit_critical_batch(rows_on_a_curve(make_row, 1000, 0, sizes=[64, 128, 256, 512]))

    assert (fit.b_crit, fit.b_crit_ci.low) == (None, None)
    assert 32 <= fit.b_crit_ci.high < 64
    assert "upper bound only" in fit.warning


def test_batch_sizes_too_close_together_give_no_bound(make_row):
    fit = fit_critical_batch([make_row(size, [1000 - size] * 3) for size in (100, 105, 110)])

    assert fit.b_crit_ci == Interval(None, None)
    assert "too close together" in fit.warning


def test_batch_sizes_that_never_met_the_goal_are_listed(make_row):
    rows = [make_row(1, num_trials=32), make_row(2, num_trials=32), *rows_on_a_curve(make_row, 4000, 409600, SIZES[2:])]
    fit = fit_critical_batch(rows)

    assert fit.censored == (1, 2)
    assert fit.batch_sizes[:3] == (4, 8, 16)
