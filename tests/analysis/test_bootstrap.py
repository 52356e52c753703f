from __future__ import annotations

import numpy as np
import pytest

from batchlab.analysis import (
    Interval,
    distribution_bounds,
    minimum_bounds,
    minimum_interval,
    rank_probabilities,
    ratio_bounds,
    resample_minimum,
)


def brute_force(steps: list[float], num_resamples: int) -> np.ndarray:
    """Resample the trials themselves, all of them, and take the smallest each time."""
    rng = np.random.default_rng(1)
    drawn = rng.integers(len(steps), size=(num_resamples, len(steps)))
    return np.array(steps)[drawn].min(axis=1)


@pytest.mark.parametrize("num_trials", [2, 3, 5, 10, 32, 100])
def test_the_closed_form_agrees_with_resampling_the_trials(num_trials):
    steps = [100 + 7 * k for k in range(num_trials)]
    draws = brute_force([float(step) for step in steps], 20_000)

    interval = minimum_interval(steps, num_trials)

    for bound, probability in ((interval.low, 0.025), (interval.high, 0.975)):
        assert np.mean(draws < bound) < probability + 0.004  # four standard errors of 20,000 draws
        assert np.mean(draws <= bound) > probability - 0.004


def test_the_fourth_smallest_of_thirty_two_is_the_upper_bound():
    # By hand: 1 - (29/32)^32 = 0.957 is short of 97.5 %, 1 - (28/32)^32 = 0.986 is not.
    assert Interval(1, 4) == minimum_interval(range(1, 33), 32)


def test_an_upper_bound_among_the_trials_that_missed_the_goal_is_censored():
    assert Interval(1, None) == minimum_interval([1, 2, 3], 32)


def test_two_trials_give_both_as_bounds():
    # 1 - (1/2)^2 = 0.75: the better of two is drawn three times out of four.
    assert Interval(5, 9) == minimum_interval([5, 9], 2)


def test_one_trial_or_none_reached_gives_no_interval():
    assert minimum_interval([5], 1) is None
    assert minimum_interval([], 10) is None


def test_resampled_minima_follow_the_closed_form():
    steps, num_trials = [10, 20, 30], 6
    draws = resample_minimum(steps, num_trials, np.random.default_rng(0), 40_000)

    for k, step in enumerate(steps, start=1):
        assert 1 - ((num_trials - k) / num_trials) ** num_trials == pytest.approx(np.mean(draws <= step), abs=0.01)
    assert pytest.approx(np.mean(np.isinf(draws)), abs=0.003) == 0.5**6


def test_the_same_seed_draws_the_same_minima():
    first, second = (resample_minimum([1, 2, 3], 3, np.random.default_rng(7), 50) for _ in range(2))

    np.testing.assert_array_equal(first, second)


def test_the_closed_form_serves_any_values():
    assert minimum_bounds([0.01 * k for k in range(1, 33)], 32) == (0.01, 0.04)
    assert minimum_bounds([0.01], 32) == (0.01, None)
    assert minimum_bounds([], 32) is None
    assert minimum_bounds([0.01], 1) is None


@pytest.mark.parametrize("num_trials", [1, 2, 7, 100])
def test_the_probabilities_of_all_ranks_are_those_of_the_closed_form(num_trials):
    probabilities = rank_probabilities(num_trials)

    assert pytest.approx(np.sum(probabilities)) == 1
    assert pytest.approx(probabilities[0]) == 1 - (1 - 1 / num_trials) ** num_trials
    assert pytest.approx(probabilities[-1]) == num_trials**-num_trials


def test_bounds_of_a_ratio_agree_with_resampling_both_minima():
    steps, base = [100, 110, 135, 160, 170], [900, 1000, 1010, 1300]
    ratios = brute_force([float(step) for step in steps], 40_000) / np.random.default_rng(5).permutation(
        brute_force([float(step) for step in base], 40_000)
    )

    low, high = ratio_bounds(steps, 5, base, 4)

    for bound, probability in ((low, 0.025), (high, 0.975)):
        assert np.mean(ratios < bound - 1e-9) < probability + 0.004
        assert np.mean(ratios <= bound + 1e-9) > probability - 0.004


def test_a_ratio_is_open_above_where_its_numerator_may_be_censored_and_below_where_its_denominator_may_be():
    assert ratio_bounds([100], 4, [200, 200, 200, 200], 4) == (0.5, None)
    assert ratio_bounds([100, 100, 100, 100], 4, [200], 4) == (None, 0.5)
    assert ratio_bounds([100], 4, [200], 4) == (None, None)
    assert ratio_bounds([100], 1, [200, 210], 2) is None


def test_bounds_of_a_distribution_leave_out_what_is_unlikely():
    values, probabilities = np.array([5.0, 1.0, 9.0]), np.array([0.97, 0.01, 0.02])

    assert distribution_bounds(values, probabilities) == (5.0, 5.0)
    assert distribution_bounds(values, np.array([0.9, 0.05, 0.05])) == (1.0, 9.0)


def test_a_value_nobody_knows_opens_the_interval_on_both_sides():
    assert distribution_bounds(np.array([1.0, 2.0, np.nan]), np.array([0.5, 0.4, 0.1])) == (None, None)
    assert distribution_bounds(np.array([1.0, 2.0, np.nan]), np.array([0.5, 0.49, 0.01])) == (1.0, 2.0)
