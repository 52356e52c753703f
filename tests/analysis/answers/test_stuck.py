from __future__ import annotations

import numpy as np

from batchlab.analysis import count_stuck
from batchlab.core.goal import Goal
from batchlab.core.trial import Status

GOAL = Goal.read("val/loss < 1.0")


def test_a_trial_that_closed_a_tenth_of_the_way_has_left(make_result):
    # Chance is 3, the goal 1: a tenth of the way is at 2.8.
    result = make_result([[3, 2.9, 2.81], [3, 2.79, 3.0], [3, 3.5, 4.0], [3, 0.5]])

    assert count_stuck(result, GOAL) == 2


def test_chance_is_the_median_over_trials(make_result):
    assert count_stuck(make_result([[3, 2.9], [3, 2.9], [2.8, 2.9]]), GOAL) == 3


def test_only_complete_trials_count(make_result):
    result = make_result([[3, 3], [3, 3], [3, 3]], {0: Status.INFEASIBLE, 1: Status.INCOMPLETE})

    assert count_stuck(result, GOAL) == 1


def test_a_goal_to_exceed_mirrors_it(make_result):
    # Chance is 0.1, the goal 0.5: a tenth of the way is at 0.14.
    assert count_stuck(make_result([[0.1, 0.13], [0.1, 0.15]]), Goal.read("val/loss > 0.5")) == 1


def test_what_was_not_evaluated_at_the_start_or_later_is_not_called_stuck(make_result):
    assert count_stuck(make_result([[np.nan, 3, 3]]), GOAL) == 0
    assert count_stuck(make_result([[3], [3, np.nan]]), GOAL) == 0
    assert count_stuck(make_result([]), GOAL) == 0


def test_a_goal_met_by_chance_has_none(make_result):
    assert count_stuck(make_result([[0.5, 0.5]]), GOAL) == 0


def test_an_infinite_chance_tells_nothing(make_result):
    assert count_stuck(make_result([[np.inf, 0.5], [np.inf, 3.0]]), GOAL) == 0
