"""The best measurement of a study: the best value of a metric at any evaluated step of any of its trials.

"Best" is lowest or highest as the goal's direction says. Any step counts, not only the last one. A NaN is never the
best; ties go to the smallest step, then to the smallest trial id.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batchlab.analysis.answers.full_protocol import check_full
from batchlab.core.goal import Goal
from batchlab.core.measurement import Measurements
from batchlab.core.result import StudyResult
from batchlab.core.trial import Trial
from batchlab.errors import InputError, unknown_name


@dataclass(frozen=True, kw_only=True)
class BestMeasurement:
    """The best row of a study."""

    batch_size: int
    value: float
    step: int
    trial: Trial
    num_trials: int
    """Complete trials that were used."""


def best_measurement(result: StudyResult, goal: Goal, num_trials: int | None = None) -> BestMeasurement | None:
    """Return the best value of the goal's metric over the first complete trials; None where there is no value.

    The goal's threshold plays no part, only its metric and its direction do. For the best under a budget, apply the
    budget first: without one, InputError for a race that ended before its own.

    >>> from batchlab.analysis import apply_step_budget, example_study
    >>> goal = Goal.read("val/classification_error < 0.1")
    >>> best = best_measurement(example_study(), goal)
    >>> best.value, best.step, best.trial.trial_id
    (0.04, 300, 0)
    >>> best_measurement(apply_step_budget(example_study(), 200), goal).value
    0.07
    """
    check_full(result, "The best value without a budget")
    trials = result.first_complete(num_trials)
    bests = _bests_of_trials(result.measurements, goal, [trial.trial_id for trial in trials])
    if len(bests.cost) == 0:
        return None
    first = np.lexsort((bests.trial_id, bests.step, bests.cost))[0]
    return BestMeasurement(
        batch_size=result.batch_size,
        value=_value(float(bests.cost[first]), goal),
        step=int(bests.step[first]),
        trial=next(trial for trial in trials if trial.trial_id == bests.trial_id[first]),
        num_trials=len(trials),
    )


def best_values(result: StudyResult, goal: Goal) -> dict[int, float]:
    """Return the best value of the goal's metric by trial id, of every trial that has one, diverged ones too.

    InputError for a race that ended before its budget.

    >>> from batchlab.analysis import example_study
    >>> best_values(example_study(), Goal.read("val/classification_error < 0.1"))
    {0: 0.04, 1: 0.06, 2: 0.05, 3: 0.05}
    """
    check_full(result, "The best value of every trial")
    bests = _bests_of_trials(result.measurements, goal, [trial.trial_id for trial in result.trials])
    pairs = zip(bests.trial_id.tolist(), bests.cost.tolist(), strict=True)
    return {trial_id: _value(cost, goal) for trial_id, cost in pairs}


@dataclass(frozen=True)
class _Bests:
    """The best row of every trial that has a value."""

    trial_id: np.ndarray  # [num_trials_with_a_value] int64
    step: np.ndarray  # [num_trials_with_a_value] int64
    cost: np.ndarray  # [num_trials_with_a_value] float64: the value, or minus the value where high is good


def _bests_of_trials(measurements: Measurements, goal: Goal, trial_ids: list[int]) -> _Bests:
    cost = _column(measurements, goal.metric)
    if not goal.is_lower_better:
        cost = -cost
    keep = np.isin(measurements.trial_id, trial_ids) & ~np.isnan(cost)
    ids, steps, cost = measurements.trial_id[keep], measurements.step[keep], cost[keep]
    if len(ids) == 0:
        return _Bests(ids, steps, cost)
    # Rows are sorted by trial and step: each trial is one run of them, and the first of equals has the smallest step.
    starts = np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))
    lowest = np.minimum.reduceat(cost, starts)
    is_lowest = np.flatnonzero(cost == np.repeat(lowest, np.diff(starts, append=len(ids))))
    first = is_lowest[np.searchsorted(is_lowest, starts)]
    return _Bests(ids[first], steps[first], lowest)


def _column(measurements: Measurements, metric: str) -> np.ndarray:
    if metric in measurements.metrics:
        return measurements.metrics[metric]
    if len(measurements) == 0:
        return np.empty(0)
    raise InputError(f"goal: {unknown_name('metric', metric, measurements.metrics)}")


def _value(cost: float, goal: Goal) -> float:
    return cost if goal.is_lower_better else -cost
