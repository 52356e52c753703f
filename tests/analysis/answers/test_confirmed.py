from __future__ import annotations

import numpy as np
import pytest

from batchlab.analysis import Interval, confirmed_steps, median_interval, steps_to_result
from batchlab.analysis.answers.confirmed import lower_rank
from batchlab.core.confirmation import Confirmation, Replicate
from batchlab.core.goal import Goal

GOAL = Goal.read("val/loss < 1.0")


def confirmation(steps, seeds=6, goal=GOAL):
    """Steps of the replicates by trial id, in the order of confirmation."""
    replicates = [
        Replicate(trial_id=trial_id, replicate=k + 1, goal_step=step, last_step=step or 90)
        for trial_id, found in steps.items()
        for k, step in enumerate(found)
    ]
    return Confirmation(goal=goal, seeds=seeds, trial_ids=tuple(steps), end_step=90, replicates=tuple(replicates))


@pytest.fixture
def study(make_result):
    def make(steps, **options):
        return make_result([[3, 0.5], [3, 3, 0.5], [3, 3, 3]], confirmation=confirmation(steps, **options))

    return make


def test_the_smallest_median_wins_and_ties_go_to_the_first(study):
    found = confirmed_steps(study({1: [30, 30, 30, 40, 40, 40], 0: [10, 20, 35, 35, 80, 90]}), GOAL)

    assert (found.trial.trial_id, found.steps, found.interval) == (1, 35, Interval(30, 40))
    assert confirmed_steps(study({0: [20] * 6, 1: [10] * 6}), GOAL).trial.trial_id == 1


def test_the_median_of_an_even_number_is_the_mean_of_the_middle_two(study):
    assert confirmed_steps(study({0: [10, 20, 30, 41, 50, 60]}), GOAL).steps == 35.5
    assert confirmed_steps(study({0: [10, 20, 30, 40, 50, 60, 70]}, seeds=7), GOAL).steps == 40


def test_a_replicate_that_missed_ranks_last(study):
    found = confirmed_steps(study({0: [10, None, 30, 20, None, 40]}), GOAL)

    assert (found.steps, found.interval) == (35, Interval(10, None))
    assert found.replicate_steps == (10, None, 30, 20, None, 40)
    assert confirmed_steps(study({0: [10, None, 30, 20, None, None]}), GOAL).steps is None


def test_replicates_that_diverged_are_counted_and_leave_no_upper_bound(make_result):
    def found(diverged):
        replicates = [
            Replicate(trial_id=0, replicate=k, goal_step=10 * k, last_step=10 * k)
            if k <= 4
            else Replicate(trial_id=0, replicate=k, last_step=90, diverged_step=90 if k - 5 < diverged else None)
            for k in range(1, 7)
        ]
        made = Confirmation(goal=GOAL, seeds=6, trial_ids=(0,), end_step=90, replicates=tuple(replicates))
        return confirmed_steps(make_result([[3, 0.5]], confirmation=made), GOAL)

    assert [found(number).num_diverged for number in (0, 1, 2)] == [0, 1, 2]
    assert [found(number).is_open_by_divergence for number in (0, 1)] == [False, True]


def test_a_replicate_that_is_missing_ranks_last(study):
    found = confirmed_steps(study({0: [10, 20, 30, 40]}), GOAL)

    assert (found.steps, found.replicate_steps[4:]) == (35, (None, None))


def test_where_all_miss_the_first_point_stands_without_a_value(study):
    found = confirmed_steps(study({1: [None] * 6, 0: [None] * 6}), GOAL)

    assert (found.trial.trial_id, found.steps, found.interval) == (1, None, Interval(None, None))


def test_fewer_than_six_seeds_give_a_median_without_bounds(study):
    found = confirmed_steps(study({0: [10, 20, 30, 40, 50]}, seeds=5), GOAL)

    assert (found.steps, found.interval) == (30, Interval(None, None))


@pytest.mark.parametrize(
    ("seeds", "rank"),
    # P(Bin(s, 1/2) <= j - 1) <= 0.025: 1/64 for s = 6; 1/256 and 9/256 for 8; 10/512 for 9; 79/4096 for 12.
    [(1, 0), (5, 0), (6, 1), (7, 1), (8, 1), (9, 2), (10, 2), (12, 3), (20, 6)],
)
def test_the_rank_of_the_lower_bound(seeds, rank):
    assert rank == lower_rank(seeds)


def test_the_bounds_are_symmetric_order_statistics():
    assert median_interval([9, 8, 7, 6, 5, 4, 3, 2, 1]) == Interval(2, 8)


def test_another_goal_or_none_gives_none(study, make_result):
    assert confirmed_steps(study({0: [10] * 6}), Goal.read("val/loss < 0.9")) is None
    assert confirmed_steps(make_result([[3, 0.5]]), GOAL) is None


def test_the_answer_belongs_to_all_trials_it_was_chosen_from(study):
    result = study({1: [10] * 6})

    assert steps_to_result(result, GOAL).confirmed.steps == 10
    assert steps_to_result(result, GOAL, num_trials=1).confirmed is None


def test_a_goal_that_nobody_met_has_no_confirmed_answer(study):
    assert confirmed_steps(study({}), GOAL) is None


@pytest.mark.parametrize(("seeds", "points"), [(6, 1), (6, 3), (7, 5), (9, 3), (12, 10), (20, 3), (9, 20)])
def test_the_interval_of_the_best_of_several_points_covers_95_per_cent(seeds, points):
    """Equal points are the worst case: the one that is chosen is nothing but lucky."""
    values = np.sort(np.random.default_rng(0).random((20_000, points, seeds)), axis=2)
    chosen = values[np.arange(len(values)), np.median(values, axis=2).argmin(axis=1)]
    rank = lower_rank(seeds, points)

    assert ((chosen[:, rank - 1] <= 0.5) & (chosen[:, -rank] >= 0.5)).mean() >= 0.95


def test_too_few_seeds_for_the_points_give_no_bounds():
    assert lower_rank(6, points=5) == 0
    assert median_interval([1, 2, 3, 4, 5, 6], points=5) == Interval(None, None)


def test_there_may_be_thousands_of_seeds():
    interval = median_interval(range(1, 2001))

    assert (interval.low, interval.high) == pytest.approx((957, 1044), abs=2)  # 1000 -+ 1.96 sqrt(500)
