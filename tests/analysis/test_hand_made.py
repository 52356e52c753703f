"""Three studies written by hand, with every answer worked out on paper.

Workload a/b/c, goal val/error < 0.2; COMPLETE unless said otherwise.

====  =====  ==========  =========  ===============  ==========================================
B     trial  status      smoothing  learning rate    step: val/error
====  =====  ==========  =========  ===============  ==========================================
10    0                  (none)     0.1              0: 0.9   10: 0.2    20: 0.15   30: 0.1
10    1      INFEASIBLE  0.1        1.0              0: 0.9   10: 0.05   (then it diverged)
10    2                  0.1        0.2              0: 0.9   10: NaN    20: 0.15   30: 0.1
10    3      INCOMPLETE  0.0        0.3              0: 0.1
20    0                  0.0        0.1              0: 0.19  10: 0.3    15: 0.25
20    1                  0.1        0.2              0: 0.8   10: 0.12   15: 0.12
40    0                  0.0        0.1              0: 0.9   5: 0.3     10: 0.2
40    1                  (none)     0.2              0: NaN   5: NaN     10: NaN
====  =====  ==========  =========  ===============  ==========================================

Studies trained to step 30, 15 and 10.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from batchlab.analysis import (
    apply_example_budget,
    apply_step_budget,
    best_measurement,
    classify_points,
    first_complete_trials,
    group_trials,
    normalise_steps,
    steps_to_result,
    steps_without_best,
)
from batchlab.core.goal import Goal
from batchlab.core.measurement import Curve, Measurements
from batchlab.core.result import StudyResult
from batchlab.core.space import SearchSpace
from batchlab.core.trial import Status, Trial
from batchlab.errors import InputError

GOAL = Goal.read("val/error < 0.2")
NAN = math.nan


def study(batch_size, end_step, *rows):
    trials = [
        Trial(trial_id=i, status=status, metaparameters=point, last_step=max(curve))
        for i, (status, point, curve) in enumerate(rows)
    ]
    curves = [
        Curve(i, np.array(list(curve)), {"val/error": np.array(list(curve.values()))})
        for i, (_, _, curve) in enumerate(rows)
    ]
    return StudyResult("a/b/c", batch_size, tuple(trials), Measurements.of(curves), SearchSpace({}), end_step)


def point(learning_rate, smoothing=None):
    return {"learning_rate": learning_rate} | ({} if smoothing is None else {"label_smoothing": smoothing})


@pytest.fixture
def ten():
    return study(
        10,
        30,
        (Status.COMPLETE, point(0.1), {0: 0.9, 10: 0.2, 20: 0.15, 30: 0.1}),
        (Status.INFEASIBLE, point(1.0, 0.1), {0: 0.9, 10: 0.05}),
        (Status.COMPLETE, point(0.2, 0.1), {0: 0.9, 10: NAN, 20: 0.15, 30: 0.1}),
        (Status.INCOMPLETE, point(0.3, 0.0), {0: 0.1}),
    )


@pytest.fixture
def twenty():
    return study(
        20,
        15,
        (Status.COMPLETE, point(0.1, 0.0), {0: 0.19, 10: 0.3, 15: 0.25}),
        (Status.COMPLETE, point(0.2, 0.1), {0: 0.8, 10: 0.12, 15: 0.12}),
    )


@pytest.fixture
def forty():
    return study(
        40,
        10,
        (Status.COMPLETE, point(0.1, 0.0), {0: 0.9, 5: 0.3, 10: 0.2}),
        (Status.COMPLETE, point(0.2), {0: NAN, 5: NAN, 10: NAN}),
    )


def test_steps_to_result_skips_the_equal_the_nan_and_the_diverged(ten):
    row = steps_to_result(ten, GOAL)

    assert (row.steps, row.trial.trial_id) == (20, 0)  # trial 2 meets it at step 20 too: the smaller id wins
    assert row.reached_steps == (20, 20)
    assert (row.num_trials, row.infeasible, row.incomplete) == (2, 1, 1)


def test_steps_to_result_may_be_zero_or_none(twenty, forty):
    assert (steps_to_result(twenty, GOAL).steps, steps_to_result(twenty, GOAL).trial.trial_id) == (0, 0)
    assert steps_to_result(forty, GOAL).steps is None  # 0.2 is not below 0.2


def test_the_best_measurement_and_its_ties(ten, twenty, forty):
    bests = [best_measurement(one, GOAL) for one in (ten, twenty, forty)]

    assert [(best.value, best.step, best.trial.trial_id) for best in bests] == [
        (0.1, 30, 0),
        (0.12, 10, 1),
        (0.2, 10, 0),
    ]


def test_the_best_of_a_metric_to_maximise(ten, twenty):
    goal = Goal.read("val/error > 0.5")
    best = best_measurement(twenty, goal)

    assert (best.value, best.step, best.trial.trial_id) == (0.8, 0, 1)
    assert (best_measurement(ten, goal).step, best_measurement(ten, goal).trial.trial_id) == (0, 0)


def test_step_budgets_include_their_last_step_and_leave_out_what_trained_less(ten, twenty, forty):
    within = [apply_step_budget(one, 15) for one in (ten, twenty, forty)]

    assert [one is None for one in within] == [False, False, True]
    assert [best_measurement(one, GOAL).value for one in within[:2]] == [0.2, 0.12]
    assert best_measurement(apply_step_budget(ten, 20), GOAL).value == 0.15


def test_example_budgets_are_steps_times_batch_size(ten, twenty, forty):
    # 300 examples: 30 steps at batch size 10, 15 at 20, 7.5 at 40.
    within = [apply_example_budget(one, 300) for one in (ten, twenty, forty)]

    assert [best_measurement(one, GOAL).value for one in within] == [0.1, 0.12, 0.3]
    assert apply_example_budget(ten, 301) is None
    assert best_measurement(apply_example_budget(forty, 199), GOAL).value == 0.9


def test_the_first_complete_trials_are_not_the_best_ones(ten):
    assert [trial.trial_id for trial in first_complete_trials(ten, 2).trials] == [0, 2]
    assert set(first_complete_trials(ten, 1).measurements.trial_id.tolist()) == {0}
    with pytest.raises(InputError, match="a/b/c at batch size 10 has 2 complete trials, not the 3 asked for"):
        first_complete_trials(ten, 3)


def test_points_by_outcome_under_a_budget(ten):
    def ids(points):
        return [[t.trial_id for t in group] for group in (points.met, points.not_met, points.infeasible)]

    assert ids(classify_points(ten, GOAL)) == [[0, 2], [], [1]]
    assert classify_points(ten, GOAL).best.trial_id == 0
    assert ids(classify_points(ten, GOAL, max_steps=20)) == [[0, 2], [], [1]]
    assert ids(classify_points(ten, GOAL, max_steps=19.5)) == [[], [0, 2], [1]]
    assert classify_points(ten, GOAL, max_steps=19.5).best is None


def test_groups_by_label_smoothing(ten, twenty):
    groups = group_trials(ten, "label_smoothing", missing=0.0)

    assert {value: [t.trial_id for t in group.trials] for value, group in groups.items()} == {0.0: [0, 3], 0.1: [1, 2]}
    assert [steps_to_result(group, GOAL).trial.trial_id for group in groups.values()] == [0, 2]
    assert list(group_trials(ten, "label_smoothing")) == [0.0, 0.1]
    assert list(group_trials(ten, "label_smoothing")[0.0].trials) == [ten.trials[3]]
    assert [best_measurement(group, GOAL).value for group in group_trials(twenty, "label_smoothing").values()] == [
        0.19,
        0.12,
    ]


def test_steps_without_the_best_trials(ten, twenty):
    without_one = steps_without_best(ten, GOAL, 1)

    assert (without_one.steps, without_one.trial.trial_id, without_one.num_trials) == (20, 2, 1)
    assert [steps_without_best(twenty, GOAL, k).steps for k in (0, 1, 3)] == [0, 10, None]
    with pytest.raises(InputError, match="num_removed = -1"):
        steps_without_best(ten, GOAL, -1)


@pytest.mark.parametrize("most", [-1, math.nan])
def test_a_budget_below_nothing_is_refused(ten, most):
    for apply in (apply_step_budget, apply_example_budget):
        with pytest.raises(InputError, match=f"A budget of {most} "):
            apply(ten, most)


def test_steps_relative_to_one_batch_size(ten, twenty, forty):
    goal = Goal.read("val/error < 0.21")
    points = normalise_steps([steps_to_result(one, goal) for one in (ten, twenty, forty)], 10)

    # Steps are 10 (trial 0, and 20 for trial 2), 0 (and 10), 10 (one trial of two).
    assert [(p.batch_size, p.ratio) for p in points] == [(10, 1.0), (20, 0.0), (40, 1.0)]


def test_no_steps_to_be_relative_to_is_an_error(ten, twenty):
    rows = [steps_to_result(one, GOAL) for one in (ten, twenty)]

    with pytest.raises(InputError, match=r"not met by training at batch size 20\. Choose one of 10\."):
        normalise_steps(rows, 20)
    with pytest.raises(InputError, match=r"at batch size 64"):
        normalise_steps(rows, 64)
