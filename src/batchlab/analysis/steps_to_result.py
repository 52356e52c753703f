"""Steps to result: the fewest steps to a goal over the trials of a study, exactly as the paper measures it.

All evaluated rows of the selected complete trials are pooled; the answer is the smallest step whose
metric meets the goal, ties going to the smallest trial id. Nothing is interpolated or smoothed, and the
metric need not stay beyond the goal afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from batchlab.analysis.bootstrap import Interval, minimum_interval, resample_minimum
from batchlab.analysis.boundary import at_boundary
from batchlab.analysis.measured import check_measured
from batchlab.core.goal import Goal
from batchlab.core.measurement import Measurements
from batchlab.core.result import StudyResult
from batchlab.core.trial import Status, Trial
from batchlab.errors import InputError


@dataclass(frozen=True, kw_only=True)
class StepsToResult:
    """One point of the curve: the answer of one study."""

    batch_size: int
    steps: int | None
    """None: no trial met the goal within `end_step` steps."""

    trial: Trial | None
    """The optimal trial: the one that met the goal first."""

    interval: Interval | None
    """95 %, by the bootstrap over trials; None with a single trial or where the goal was not met."""

    at_boundary: tuple[str, ...]
    """Metaparameters of the optimal trial at the edge of their search range."""

    num_trials: int
    """Complete trials that were used."""

    reached_steps: tuple[int, ...]
    """The first steps to the goal of those trials that met it, ascending."""

    end_step: int
    complete: int
    infeasible: int
    incomplete: int

    @property
    def is_reached(self) -> bool:
        """Whether any trial met the goal."""
        return self.steps is not None

    @property
    def is_open(self) -> bool:
        """Whether the interval has no upper bound, too few trials having met the goal."""
        return self.interval is not None and self.interval.high is None


def first_steps(result: StudyResult, goal: Goal, num_trials: int | None = None) -> dict[int, int | None]:
    """Return the first evaluated step that meets `goal` by trial id, for each of the first complete trials.

    All complete trials are taken where `num_trials` is None or more than there are. None means that the
    trial never met the goal. InputError if the goal's metric was never measured.

    >>> from batchlab.analysis import example_study
    >>> first_steps(example_study(), Goal.read("val/classification_error < 0.06"))
    {0: 300, 1: None, 3: 300}
    """
    if num_trials is not None and num_trials < 1:
        raise InputError(f"num_trials = {num_trials} selects no trial. Use 1 or more.")
    check_measured(result.measurements, goal.metric)
    trial_ids = np.array([trial.trial_id for trial in result.first_complete(num_trials)], dtype=np.int64)
    steps = _first_met(result.measurements, goal, trial_ids)
    return {int(trial_id): _step(step) for trial_id, step in zip(trial_ids, steps, strict=True)}


def steps_to_result(result: StudyResult, goal: Goal, num_trials: int | None = None) -> StepsToResult:
    """Return the fewest steps to `goal` over the first complete trials of a study, with its interval.

    >>> from batchlab.analysis import example_study
    >>> row = steps_to_result(example_study(), Goal.read("val/classification_error < 0.08"))
    >>> row.steps, row.trial.trial_id, row.interval
    (200, 3, Interval(low=200, high=300))
    """
    return fewest_steps(result, first_steps(result, goal, num_trials))


def fewest_steps(result: StudyResult, steps_by_trial: Mapping[int, int | None]) -> StepsToResult:
    """Return the fewest of some trials' steps to a goal, as `first_steps` gives them, with its interval.

    >>> from batchlab.analysis import example_study
    >>> fewest_steps(example_study(), {0: 300, 1: None, 3: 200}).trial.trial_id
    3
    """
    reached = sorted((step, trial_id) for trial_id, step in steps_by_trial.items() if step is not None)
    reached_steps = tuple(step for step, _ in reached)
    best = next((trial for trial in result.trials if trial.trial_id == reached[0][1]), None) if reached else None
    return StepsToResult(
        batch_size=result.batch_size,
        steps=reached_steps[0] if reached else None,
        trial=best,
        interval=minimum_interval(reached_steps, len(steps_by_trial)),
        at_boundary=at_boundary(best, result.search_space) if best else (),
        num_trials=len(steps_by_trial),
        reached_steps=reached_steps,
        end_step=result.end_step,
        complete=result.count(Status.COMPLETE),
        infeasible=result.count(Status.INFEASIBLE),
        incomplete=result.count(Status.INCOMPLETE),
    )


def resample_steps(row: StepsToResult, rng: np.random.Generator, num_resamples: int) -> np.ndarray:
    """Return bootstrap draws of a row's steps; the row has met its goal.

    A draw in which no trial met the goal is taken at the end of training, the least it can be.

    >>> from batchlab.analysis import example_study
    >>> row = steps_to_result(example_study(), Goal.read("val/classification_error < 0.08"))
    >>> resample_steps(row, np.random.default_rng(1), 4).tolist()
    [200.0, 300.0, 200.0, 300.0]
    """
    draws = resample_minimum(row.reached_steps, row.num_trials, rng, num_resamples)
    return np.asarray(np.minimum(draws, max(row.end_step, row.reached_steps[-1])))


_NEVER = np.iinfo(np.int64).max


def _first_met(measurements: Measurements, goal: Goal, trial_ids: np.ndarray) -> np.ndarray:
    """Return the smallest step that meets the goal for each of the ascending `trial_ids`, or _NEVER."""
    first = np.full(len(trial_ids), _NEVER)
    if len(trial_ids) and len(measurements):
        met = np.flatnonzero(goal.is_met(measurements.metrics[goal.metric]))
        met = met[np.isin(measurements.trial_id[met], trial_ids)]
        np.minimum.at(first, np.searchsorted(trial_ids, measurements.trial_id[met]), measurements.step[met])
    return first


def _step(step: np.int64) -> int | None:
    return None if step == _NEVER else int(step)
