from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from batchlab.analysis import (
    Interval,
    best_measurement,
    example_study,
    first_steps,
    first_trials,
    select_trials,
    steps_to_result,
)
from batchlab.core.confirmation import Confirmation
from batchlab.core.goal import Goal
from batchlab.core.measurement import Measurements
from batchlab.core.protocol import IMPORTED, Protocol
from batchlab.core.result import StudyResult
from batchlab.core.trial import Status, Trial
from batchlab.errors import InputError

GOAL = Goal.read("val/loss < 1.0")


def test_the_smallest_step_over_all_trials_wins(make_result):
    result = make_result([[3, 2, 0.5], [3, 0.9, 0.8], [3, 3, 3]])

    row = steps_to_result(result, GOAL)

    assert (row.steps, row.trial.trial_id) == (10, 1)
    assert row.reached_steps == (10, 20)
    assert row.num_trials == 3


def test_the_goal_is_strict_where_it_is_written_so(make_result):
    result = make_result([[2, 1.0, 0.5]])

    assert steps_to_result(result, GOAL).steps == 20
    assert steps_to_result(result, Goal.read("val/loss <= 1.0")).steps == 10


def test_a_goal_to_exceed_is_met_from_below(make_result):
    result = make_result([[0.1, 0.31, 0.4]])

    assert steps_to_result(result, Goal.read("val/loss > 0.31")).steps == 20


def test_ties_go_to_the_smallest_trial_id(make_result):
    result = make_result([[3, 3, 0.1], [3, 0.9, 3], [3, 0.1, 3]])

    assert steps_to_result(result, GOAL).trial.trial_id == 1


def test_the_metric_need_not_stay_beyond_the_goal(make_result):
    assert steps_to_result(make_result([[3, 0.9, 5, 5]]), GOAL).steps == 10


def test_a_nan_meets_no_goal_and_later_rows_still_count(make_result):
    assert steps_to_result(make_result([[3, np.nan, 0.5]]), GOAL).steps == 20


def test_a_goal_may_be_met_before_any_update(make_result):
    assert steps_to_result(make_result([[0.5, 0.4]]), GOAL).steps == 0


def test_only_complete_trials_count_and_the_others_are_counted(make_result):
    statuses = {0: Status.INFEASIBLE, 1: Status.INCOMPLETE}
    result = make_result([[0.1], [0.1], [3, 3, 0.5]], statuses)

    row = steps_to_result(result, GOAL)

    assert (row.steps, row.trial.trial_id) == (20, 2)
    assert (row.complete, row.infeasible, row.incomplete) == (1, 1, 1)


def test_the_first_complete_trials_are_taken_in_ascending_id_not_the_best(make_result):
    result = make_result([[3, 3], [3, 3, 0.5], [3, 0.5]], {0: Status.INFEASIBLE})

    assert first_steps(result, GOAL, num_trials=1) == {1: 20}
    assert first_steps(result, GOAL, num_trials=99) == {1: 20, 2: 10}


def test_no_trial_that_meets_the_goal_is_a_result_of_none(make_result):
    row = steps_to_result(make_result([[3, 2], [3, 3]]), GOAL)

    assert (row.steps, row.trial, row.best_of, row.at_boundary) == (None, None, None, ())
    assert not row.is_reached
    assert row.end_step == 10
    assert first_steps(make_result([[3, 2], [3, 3]]), GOAL) == {0: None, 1: None}


def test_a_study_without_any_row_is_not_reached(make_result):
    row = steps_to_result(make_result([]), GOAL)

    assert (row.steps, row.num_trials) == (None, 0)


def test_a_metric_never_measured_is_an_error_that_lists_the_measured_ones(make_result):
    with pytest.raises(InputError, match=r'^goal: Unknown metric "val/lost"\. Did you mean "val/loss"\?'):
        steps_to_result(make_result([[3, 2]]), Goal.read("val/lost < 1"))


def test_a_column_of_nan_was_never_measured(make_result):
    with pytest.raises(InputError, match="was not measured: nothing was"):
        steps_to_result(make_result([[np.nan, np.nan]]), GOAL)


def test_zero_trials_are_refused(make_result):
    with pytest.raises(InputError, match="num_trials = 0 selects no trial"):
        first_steps(make_result([[3, 2]]), GOAL, num_trials=0)


def test_the_edges_of_the_best_trial_come_along(make_result):
    row = steps_to_result(make_result([[3, 0.5], [3, 3, 0.5]], learning_rate=9.9), GOAL)

    assert row.at_boundary == ("learning_rate",)


def test_six_trials_carry_a_best_of(make_result):
    curves = [[3] * k + [0.5] for k in range(1, 7)]

    assert steps_to_result(make_result(curves), GOAL).best_of.interval == Interval(10, 60)
    assert steps_to_result(make_result(curves[:5]), GOAL).best_of is None


@pytest.mark.parametrize("field", ["is_grid", "is_closed_form"])
def test_points_that_are_no_random_draw_have_no_best_of(make_result, field):
    protocol = Protocol(kind="full").model_copy(update={field: True})

    assert steps_to_result(make_result([[3, 0.5]] * 8, protocol=protocol), GOAL).best_of is None


def test_the_top_trials_come_along(make_result):
    row = steps_to_result(make_result([[3] * 10 + [0.5]] * 2 + [[3] * 12 + [0.5]] + [[3] * 13 + [0.5]]), GOAL)

    assert [trial.trial_id for trial in row.top_trials] == [0, 1, 2]


def test_what_ended_training_is_told_where_the_goal_was_not_met(make_result):
    race = Protocol(kind="race", race_factor=1.5, max_steps=100)

    assert steps_to_result(make_result([[3, 0.5]], protocol=race), GOAL).ended_by is None
    assert steps_to_result(make_result([[3, 3]], protocol=race), GOAL).ended_by == "race"
    assert steps_to_result(make_result([[3, 3]], protocol=race, end_step=100), GOAL).ended_by == "budget"
    assert steps_to_result(make_result([[3, 3]]), GOAL).ended_by == "budget"


def test_what_was_confirmed_is_known_also_where_another_goal_is_asked(make_result):
    easy = Goal.read("val/loss < 2")
    result = make_result(
        [[3, 0.5]], confirmation=Confirmation(goal=GOAL, seeds=6, trial_ids=(0,), end_step=20, replicates=())
    )
    row = steps_to_result(result, easy)

    assert (row.confirmed, row.confirmed_goal) == (None, GOAL)
    assert steps_to_result(make_result([[3, 0.5]]), easy).confirmed_goal is None


def test_a_goal_met_at_the_start_is_told(make_result):
    assert steps_to_result(make_result([[0.5, 0.5]]), GOAL).start_met
    assert not steps_to_result(make_result([[3, 0.5]]), GOAL).start_met


def test_half_a_million_rows_agree_with_a_plain_loop(make_result):
    rng = np.random.default_rng(0)
    num_trials, num_evals = 500, 1000
    values = np.maximum.accumulate(rng.exponential(size=(num_trials, num_evals)), axis=1)
    trials = tuple(
        Trial(trial_id=i, status=Status.COMPLETE, metaparameters={}, last_step=num_evals - 1) for i in range(num_trials)
    )
    rows = Measurements(
        np.repeat(np.arange(num_trials), num_evals),
        np.tile(np.arange(num_evals), num_trials),
        {"val/x": values.ravel()},
    )
    space = make_result([]).search_space
    expected = {i: next((step for step in range(num_evals) if values[i, step] > 8), None) for i in range(num_trials)}

    found = first_steps(StudyResult("a/b/c", 1, trials, rows, space, num_evals - 1), Goal.read("val/x > 8"))

    assert expected == found


def test_of_the_first_trials_only_these_are_counted(make_result):
    """The first two complete trials are 0 and 2; trial 1 diverged before the second of them, trial 4 after it."""
    stuck, fine, statuses = [3.0, 3.0], [3.0, 0.5], {1: Status.INFEASIBLE, 4: Status.INFEASIBLE}
    result = make_result([stuck, fine, fine, stuck, fine], statuses)
    goal = Goal.read("val/loss < 1.0")
    part, whole = steps_to_result(result, goal, num_trials=2), steps_to_result(result, goal)

    assert (part.complete, part.infeasible, part.stuck) == (2, 1, 1)
    assert (whole.complete, whole.infeasible, whole.stuck) == (3, 2, 2)


def test_trials_that_ended_by_themselves_tell_no_more_than_they_were_trained_for():
    study = example_study()  # evaluated every hundred steps, to 300
    goal = Goal.read("val/classification_error < 0.0001")
    short = replace(study, end_step=20_000, protocol=Protocol(kind="race", max_steps=20_000))

    row = steps_to_result(short, goal)

    assert (row.end_step, row.ended_by, row.is_censored) == (300, "budget", True)
    assert steps_to_result(replace(short, protocol=IMPORTED), goal).end_step == 20_000


def test_a_race_that_ends_between_two_reports_is_no_loop_that_ended(make_result):
    """Reports come every 10 steps and the race ended at 25: the next was not due. At 30 it was."""
    race = Protocol(kind="race", race_factor=1.5, max_steps=100)
    between, silent = (make_result([[3, 3, 3]], protocol=race, end_step=step) for step in (25, 30))

    assert [steps_to_result(result, GOAL).ended_by for result in (between, silent)] == ["race", "budget"]
    assert [steps_to_result(result, GOAL).end_step for result in (between, silent)] == [20, 20]


def test_a_budget_that_ends_between_two_reports_is_no_race(make_result):
    race = Protocol(kind="race", race_factor=1.5, max_steps=25)

    assert steps_to_result(make_result([[3, 3, 3]], protocol=race, end_step=25), GOAL).ended_by == "budget"


def test_only_rows_with_the_metric_of_the_goal_count_as_looks(make_result):
    """Another metric every 10 steps: the goal's was measured at 0, 20, 40 and missed until 40, or to the end at 50."""
    nan = math.nan
    met, missed = make_result([[3, nan, 3, nan, 0.5, nan]]), make_result([[3, nan, 3, nan, 3, nan]])

    assert steps_to_result(met, GOAL).earliest == 21
    assert steps_to_result(missed, GOAL).end_step == 40


def test_an_open_interval_ends_where_the_trials_that_missed_it_ended(make_result):
    """Two of three loops of one's own gave up at step 20; the third went on to 50."""
    row = steps_to_result(make_result([[3, 3, 3], [3, 3, 3], [3, 3, 3, 0.5, 0.5, 0.5]]), GOAL)

    assert (row.steps, row.end_step, row.ended_alone) == (30, 20, True)


def test_trials_may_be_selected_in_any_order(make_result):
    result = make_result([[3, 0.5], [3, 3, 0.5], [3, 3, 3, 3], [3, 3, 3, 0.5]])
    chosen = select_trials(result, [result.trials[i] for i in (3, 0, 1)])

    assert first_steps(chosen, GOAL) == {0: 10, 1: 20, 3: 30}


@pytest.mark.parametrize("num_trials", [0, -1])
def test_no_trials_are_no_selection(make_result, num_trials):
    for select in (first_trials, first_steps_of_first, best_of_first):
        with pytest.raises(InputError, match=f"num_trials = {num_trials} selects no trial"):
            select(make_result([[3, 0.5]]), num_trials)


def first_steps_of_first(result, num_trials):
    return first_steps(result, GOAL, num_trials)


def best_of_first(result, num_trials):
    return best_measurement(result, GOAL, num_trials)


def test_a_closed_form_is_exact_only_where_every_step_was_evaluated(make_result):
    """`make_result` measures every ten steps: met at 20, so perhaps at 11 already."""
    exact = Protocol(kind="full", is_closed_form=True)
    row = steps_to_result(make_result([[3, 3, 0.5]], protocol=exact), GOAL)

    assert (row.steps, row.earliest, row.is_exact) == (20, 11, False)
    assert replace(row, earliest=20).is_exact
    assert not replace(row, earliest=20, protocol=Protocol(kind="full")).is_exact
