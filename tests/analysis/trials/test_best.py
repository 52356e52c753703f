from __future__ import annotations

import numpy as np
import pytest

from batchlab.analysis import best_measurement, select_metric
from batchlab.core.goal import Goal
from batchlab.core.measurement import Measurements
from batchlab.core.result import StudyResult
from batchlab.core.trial import Status, Trial
from batchlab.errors import InputError

GOAL = Goal.read("val/loss < 1.0")


def test_only_the_first_complete_trials_count(make_result):
    result = make_result([[3, 0.1], [3, 0.5], [3, 0.4]], {0: Status.INFEASIBLE})

    assert best_measurement(result, GOAL).value == 0.4
    assert best_measurement(result, GOAL, num_trials=1).value == 0.5


def test_an_infinite_value_is_worse_than_any_other_but_better_than_none(make_result):
    assert best_measurement(make_result([[np.inf, 2.0], [np.nan, np.nan]]), GOAL).value == 2.0
    assert best_measurement(make_result([[np.nan, np.inf]]), GOAL).step == 10


def test_no_value_at_all_has_no_best(make_result):
    assert best_measurement(make_result([[np.nan, np.nan]]), GOAL) is None
    assert best_measurement(make_result([[1.0]], {0: Status.INFEASIBLE}), GOAL) is None
    assert best_measurement(make_result([]), GOAL) is None


def test_a_metric_never_measured_is_an_error_that_lists_the_measured_ones(make_result):
    with pytest.raises(InputError, match=r'^goal: Unknown metric "val/lost"\. Did you mean "val/loss"\?'):
        best_measurement(make_result([[3, 2]]), Goal.read("val/lost < 1"))


def test_one_metric_alone_gives_the_same_best(make_result):
    result = make_result([[3, 0.7], [3, 0.5]])

    assert best_measurement(result, GOAL) == best_measurement(select_metric(result, "val/loss"), GOAL)


def test_half_a_million_rows_agree_with_a_plain_loop(make_result):
    rng = np.random.default_rng(0)
    num_trials, num_evals = 500, 1000
    values = np.round(rng.exponential(size=(num_trials, num_evals)), 3)  # so that ties are common
    values[rng.random(values.shape) < 0.01] = np.nan
    trials = tuple(
        Trial(trial_id=2 * i, status=Status.COMPLETE, metaparameters={}, last_step=num_evals - 1)
        for i in range(num_trials)
    )
    rows = Measurements(
        np.repeat(2 * np.arange(num_trials), num_evals),
        np.tile(np.arange(num_evals), num_trials),
        {"val/loss": values.ravel()},
    )
    result = StudyResult("a/b/c", 1, trials, rows, make_result([]).search_space, num_evals - 1)
    lowest = np.nanmin(values)
    step, row = min(
        (step, row) for row in range(num_trials) for step in range(num_evals) if values[row, step] == lowest
    )

    found = best_measurement(result, GOAL)

    assert (lowest, step, 2 * row) == (found.value, found.step, found.trial.trial_id)
