from __future__ import annotations

import time

import numpy as np
import pytest

from batchlab.analysis import fit_critical_batch

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

    low, high = fit.b_crit_ci
    assert low < 102.4 < high
    assert low < fit.b_crit < high
    assert pytest.approx(fit.s_min, rel=0.05) == 4000
    assert pytest.approx(fit.e_min, rel=0.05) == 409600
    assert fit.warning is None
    assert fit.censored == ()
    np.testing.assert_allclose(fit.steps_at(np.array([fit.b_crit])), 2 * fit.s_min)


def test_the_same_rows_give_the_same_interval(make_row):
    rows = rows_on_a_curve(make_row, 4000, 409600)

    assert fit_critical_batch(rows).b_crit_ci == fit_critical_batch(rows).b_crit_ci
    assert fit_critical_batch(rows).b_crit_ci != fit_critical_batch(rows, seed=1).b_crit_ci


def test_more_scatter_among_the_best_trials_widens_the_interval(make_row):
    def width(spread):
        low, high = fit_critical_batch(rows_on_a_curve(make_row, 4000, 409600, spread=spread)).b_crit_ci
        return np.log(high / low)

    assert width(1.0) > 2 * width(0.3)


def test_twelve_batch_sizes_are_fitted_within_a_second(make_row):
    rows = rows_on_a_curve(make_row, 4000, 409600)
    fit_critical_batch(rows, num_resamples=2)
    start = time.process_time()

    fit_critical_batch(rows)

    assert time.process_time() - start < 1


def test_fewer_than_three_batch_sizes_give_no_fit(make_row):
    assert fit_critical_batch([make_row(1, [100, 101]), make_row(2, [60, 61]), make_row(4)]) is None


def test_a_goal_met_before_the_first_update_gives_no_fit(make_row):
    assert fit_critical_batch([make_row(size, [0, 0]) for size in (1, 2, 4, 8)]) is None


def test_perfect_scaling_alone_gives_a_lower_bound(make_row):
    fit = fit_critical_batch(rows_on_a_curve(make_row, 1e-9, 10**6, sizes=[1, 2, 4, 8, 16]))

    low, high = fit.b_crit_ci
    assert high is None
    assert low == 32  # no further than twice the largest batch size
    assert "Only perfect scaling was seen" in fit.warning


def test_steps_that_fall_faster_than_perfect_scaling_give_a_lower_bound(make_row):
    fit = fit_critical_batch([make_row(size, [round(1e5 / size**1.3)] * 4) for size in (1, 2, 4, 8, 16)])

    assert fit.b_crit_ci == (32, None)
    assert "far beyond those tried: it has a lower bound only" in fit.warning


def test_flat_steps_give_an_upper_bound(make_row):
    fit = fit_critical_batch(rows_on_a_curve(make_row, 1000, 0, sizes=[64, 128, 256, 512]))

    low, high = fit.b_crit_ci
    assert low is None
    assert high == 32  # no further than half the smallest batch size
    assert "upper bound only" in fit.warning


def test_batch_sizes_too_close_together_give_no_bound(make_row):
    fit = fit_critical_batch([make_row(size, [1000 - size] * 3) for size in (100, 105, 110)])

    assert fit.b_crit_ci == (None, None)
    assert "too close together" in fit.warning


def test_batch_sizes_that_never_met_the_goal_are_listed(make_row):
    rows = [make_row(1, num_trials=32), make_row(2, num_trials=32), *rows_on_a_curve(make_row, 4000, 409600, SIZES[2:])]
    fit = fit_critical_batch(rows)

    assert fit.censored == (1, 2)
    assert fit.batch_sizes[:3] == (4, 8, 16)
    assert "Not reached, so not fitted: batch size 1 and 2." in fit.warning


def test_an_open_interval_of_steps_is_told(make_row):
    rows = rows_on_a_curve(make_row, 4000, 409600)
    rows[3] = make_row(8, [55200], num_trials=32, end_step=82800)
    fit = fit_critical_batch(rows)

    assert "Too few trials met the goal at batch size 8 " in fit.warning


def test_a_resample_without_success_counts_as_the_end_of_training(make_row):
    """One of two trials met the goal: a quarter of the draws miss it, and are at least as late as the end."""
    rows = [make_row(size, [round(40 + 4096 / size)] * 8) for size in (1, 16, 256)]
    rows.append(make_row(4096, [41], num_trials=2, end_step=82))
    low, high = fit_critical_batch(rows).b_crit_ci

    assert low < 0.7 * high


def test_one_trial_for_each_batch_size_leaves_the_delta_method(make_row):
    rows = [make_row(size, [round(100 + 51200 / size) + size % 3]) for size in (16, 64, 256, 1024, 4096)]
    fit = fit_critical_batch(rows)

    assert fit.num_resamples == 0
    assert fit.b_crit_ci == fit.b_crit_ci_delta
    assert "delta method" in fit.warning
