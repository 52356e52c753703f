from __future__ import annotations

import numpy as np
import pytest

from batchlab.analysis import Interval, fit_critical_batch
from batchlab.core.protocol import Protocol

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


def test_an_unreached_batch_size_counts_as_more_steps_than_it_trained(make_row):
    rows = rows_on_a_curve(make_row, 4000, 409600, SIZES[:10])
    late = make_row(512, num_trials=32, end_step=9000)  # the curve says 4,800

    alone, fit = fit_critical_batch(rows[:9]), fit_critical_batch([*rows[:9], late])

    assert fit.censored == fit.contradicted_by == (512,)
    assert fit.b_crit < alone.b_crit
    assert len(fit.residuals) == len(fit.batch_sizes) == 9
    assert "Batch size 512 trained for more steps than the fitted curve predicts" in fit.warning
    assert "the data contradict the curve" in fit.warning


def test_an_excess_that_the_scatter_explains_is_told_as_such(make_row):
    steps = {16: 3600, 64: 800, 256: 320, 1024: 130}  # 200 (1 + 256 / B) is off by up to 35 %
    late = make_row(4096, num_trials=32, end_step=140)
    fit = fit_critical_batch([*(make_row(size, [found]) for size, found in steps.items()), late])

    assert fit.contradicted_by == (4096,)
    assert "without meeting the goal, by no more than the others scatter about it." in fit.warning
    assert "contradict the curve" not in fit.warning


def test_towards_the_end_of_the_batch_sizes_the_interval_is_uneven(make_row):
    steps = {16: 330, 64: 85, 256: 27, 1024: 9}  # B_crit about 1,300
    fit = fit_critical_batch([make_row(size, [1000 * found]) for size, found in steps.items()])

    below, above = fit.b_crit / fit.b_crit_ci.low, fit.b_crit_ci.high / fit.b_crit
    assert 1 < below < above / 1.05


def test_a_curve_whose_end_was_hardly_seen_has_a_lower_bound_only(make_row):
    steps = {16: 300, 64: 100, 256: 24, 1024: 8}
    fit = fit_critical_batch([make_row(size, [1000 * found]) for size, found in steps.items()])

    assert fit.b_crit is None and fit.b_crit_ci.high is None
    assert 64 < fit.b_crit_ci.low < 1024
    assert "a lower bound only: larger batch sizes would tell" in fit.warning


def test_an_unreached_batch_size_that_trained_too_little_contradicts_nothing(make_row):
    rows = [*rows_on_a_curve(make_row, 4000, 409600), make_row(4096, num_trials=32, end_step=100)]
    fit = fit_critical_batch(rows)

    assert (fit.censored, fit.contradicted_by, fit.warning) == ((4096,), (), None)


def test_confirmed_medians_are_fitted_where_every_reached_row_has_one(make_row):
    def row(size, replicates):
        return make_row(size, [1], replicate_steps=replicates)

    confirmed = [row(size, [100 + 51_200 // size] * 6) for size in (16, 64, 256, 1024, 4096)]
    fit = fit_critical_batch([*confirmed, make_row(16_384, end_step=50)])

    assert fit.estimand == "confirmed"
    assert pytest.approx(fit.steps_at(np.array([512.0])), rel=0.01) == 200
    assert fit_critical_batch([*confirmed, make_row(1, [51_300])]).estimand == "minimum"


def test_without_chance_there_is_a_value_and_no_interval(make_row):
    exact = Protocol(kind="full", is_closed_form=True)
    fit = fit_critical_batch([make_row(size, [100 + 51_200 // size], protocol=exact) for size in (16, 64, 256, 1024)])

    assert fit.is_exact
    assert pytest.approx(fit.b_crit, rel=0.01) == 512
    assert fit.b_crit_ci == Interval(None, None)
    assert fit.warning is None


def test_without_a_bound_on_either_side_there_is_no_middle(make_row):
    steps = {1: 1000, 4: 150, 16: 160}
    fit = fit_critical_batch([make_row(size, [found]) for size, found in steps.items()])

    assert (fit.b_crit, fit.b_crit_ci) == (None, Interval(None, None))
    assert "give no bound of the critical batch size" in fit.warning


def test_the_alternative_goes_through_the_same_steps(make_row):
    rows = [make_row(size, [round(1000 + (512_000 / size) ** 0.7)]) for size in SIZES]

    assert pytest.approx(fit_critical_batch(rows).power_law.exponent, abs=0.01) == 0.7
