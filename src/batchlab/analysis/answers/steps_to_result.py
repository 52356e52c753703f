"""Steps to result: the fewest steps to a goal over the trials of a study, exactly as the paper measures it.

All evaluated rows of the selected complete trials are pooled; the answer is the smallest step whose
metric meets the goal, ties going to the smallest trial id. Nothing is interpolated or smoothed, and the
metric need not stay beyond the goal afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from batchlab.analysis.answers.best_of import BestOf, best_of
from batchlab.analysis.answers.boundary import at_boundary
from batchlab.analysis.answers.confirmed import ConfirmedSteps, confirmed_steps
from batchlab.analysis.answers.full_protocol import ends_early
from batchlab.analysis.answers.gap import earliest_step
from batchlab.analysis.answers.headline import Estimate, Headline
from batchlab.analysis.answers.measured import check_measured
from batchlab.analysis.answers.stuck import count_stuck
from batchlab.analysis.answers.trained import ended_alone, last_measured, measured_steps_of
from batchlab.core.goal import Goal
from batchlab.core.measurement import Measurements
from batchlab.core.protocol import IMPORTED, Protocol
from batchlab.core.result import StudyResult
from batchlab.core.trial import Status, Trial

TOP_FACTOR = 1.5
"""The top trials met the goal within this multiple of the fewest steps: seeds alone move steps by tens of per cent."""

MIN_TOP = 3
"""Fewer trials show no region."""


@dataclass(frozen=True, kw_only=True)
class StepsToResult:
    """One point of the curve: the answers of one study."""

    batch_size: int
    steps: int | None
    """The minimum, the paper's statistic. None: no trial met the goal within `end_step` steps."""

    trial: Trial | None
    """The optimal trial: the one that met the goal first."""

    earliest: float | None = None
    """The earliest step at which that trial may have met the goal: the one after the evaluation before `steps`."""

    at_boundary: tuple[str, ...]
    """Metaparameters of the optimal trial at the edge of their search range."""

    num_trials: int
    """Complete trials that were used."""

    reached_steps: tuple[int, ...]
    """The first steps to the goal of those trials that met it, ascending."""

    end_step: int
    """To where the trials that missed the goal were measured."""

    complete: int
    infeasible: int
    incomplete: int
    stuck: int = 0
    """Complete trials that never left chance."""

    study_end: int | None = None
    """Where the study ended, if that is not `end_step`: a loop of one's own reports when it likes."""

    ended_alone: bool = False
    """Whether trials ended by themselves before their study did: of those that missed the goal, one at `end_step`."""

    best_of: BestOf | None = None
    """None for fewer than six trials, for a grid, without chance (closed form), or where the goal was not met."""

    confirmed: ConfirmedSteps | None = None
    """None where the best points were not trained again for this goal."""

    confirmed_goal: Goal | None = None
    """The goal for which the best points of all trials were trained again, this one or another; None where none was."""

    protocol: Protocol = IMPORTED
    top_trials: tuple[Trial, ...] = ()
    """The trials close to the optimal one, fewest steps first: see `top_trials`."""

    searched: tuple[str, ...] = ()
    """The metaparameters that the study searched."""

    @property
    def is_reached(self) -> bool:
        """Whether any trial met the goal."""
        return self.steps is not None

    @property
    def failed_to_confirm(self) -> bool:
        """Whether the goal was met in the search, but missed by half of the fresh seeds or more."""
        return self.is_reached and self.confirmed is not None and self.confirmed.steps is None

    @property
    def start_met(self) -> bool:
        """Whether the goal was met before any update."""
        return self.steps == 0

    @property
    def ended_by(self) -> Literal["race", "budget", "divergence"] | None:
        """What ended training where the goal was not met, divergence if no trial completed; None where it was met."""
        if self.is_reached:
            return None
        if self.num_trials == 0:
            return "divergence"
        is_raced = ends_early(self.protocol, self.study_end or self.end_step)
        return "race" if is_raced and not self.ended_alone else "budget"

    @property
    def is_exact(self) -> bool:
        """Whether there is no chance in the steps (closed form), and every step up to them was evaluated."""
        return self.protocol.is_closed_form and (not self.steps or self.estimate("minimum").is_exact)

    @property
    def is_censored(self) -> bool:
        """Whether trials were trained to `end_step` without meeting the goal: it takes more steps than that."""
        return self.ended_by in ("race", "budget") and self.end_step > 0

    def estimate(self, headline: Headline) -> Estimate:
        """Return the named answer of this batch size."""
        if headline == "minimum":
            return Estimate(self.steps, None, self.earliest)
        if headline == "best_of":
            return Estimate(self.best_of.steps, self.best_of.interval) if self.best_of else Estimate(None, None)
        answer = self.confirmed
        return Estimate(answer.steps, answer.interval, answer.earliest) if answer else Estimate(None, None)

    def winner(self, headline: Headline) -> StepsToResult | ConfirmedSteps:
        """Return whose trial stands for the named answer: the confirmed one's, else the one with the fewest steps."""
        return self.confirmed if headline == "confirmed" and self.confirmed else self


def first_steps(result: StudyResult, goal: Goal, num_trials: int | None = None) -> dict[int, int | None]:
    """Return the first evaluated step that meets `goal` by trial id, for each of the first complete trials.

    All complete trials are taken where `num_trials` is None or more than there are. None means that the
    trial never met the goal. InputError if the goal's metric was never measured.

    >>> from batchlab.analysis import example_study
    >>> first_steps(example_study(), Goal.read("val/classification_error < 0.06"))
    {0: 300, 1: None, 3: 300}
    """
    complete = result.first_complete(num_trials)
    if complete or goal.metric not in result.measurements.metrics:  # else all have diverged, maybe before any value
        check_measured(result.measurements, goal.metric)
    trial_ids = np.array([trial.trial_id for trial in complete], dtype=np.int64)
    steps = _first_met(result.measurements, goal, trial_ids)
    return {int(trial_id): _step(step) for trial_id, step in zip(trial_ids, steps, strict=True)}


def steps_to_result(result: StudyResult, goal: Goal, num_trials: int | None = None) -> StepsToResult:
    """Return the steps to `goal` over the first complete trials of a study: the minimum, best of m, and confirmed.

    >>> from batchlab.analysis import example_study
    >>> row = steps_to_result(example_study(), Goal.read("val/classification_error < 0.08"))
    >>> row.steps, row.trial.trial_id, row.reached_steps
    (200, 3, (200, 300, 300))
    """
    return fewest_steps(result, goal, first_steps(result, goal, num_trials))


def fewest_steps(result: StudyResult, goal: Goal, steps_by_trial: Mapping[int, int | None]) -> StepsToResult:
    """Return the answers for some of a study's trials, from their steps to `goal` as `first_steps` gives them.

    >>> from batchlab.analysis import example_study
    >>> goal = Goal.read("val/classification_error < 0.08")
    >>> fewest_steps(example_study(), goal, {0: 300, 1: None, 3: 200}).trial.trial_id
    3
    """
    reached = sorted((step, trial_id) for trial_id, step in steps_by_trial.items() if step is not None)
    reached_steps = tuple(step for step, _ in reached)
    measured = measured_steps_of(result, goal.metric, steps_by_trial.keys())
    missed = [steps for trial_id, steps in measured.items() if steps_by_trial[trial_id] is None]
    trials = {trial.trial_id: trial for trial in result.trials}
    best = trials[reached[0][1]] if reached else None
    tried = [trial for trial in result.trials if trial.trial_id <= max(steps_by_trial, default=-1)]
    counted = tried if len(steps_by_trial) < result.count(Status.COMPLETE) else result.trials
    is_random = not (result.protocol.is_grid or result.protocol.is_closed_form)
    is_whole = result.confirmation is not None and steps_by_trial.keys() >= set(result.confirmation.trial_ids)
    return StepsToResult(
        batch_size=result.batch_size,
        steps=reached_steps[0] if reached else None,
        trial=best,
        earliest=earliest_step(result.steps_of(best.trial_id, goal.metric), reached_steps[0]) if best else None,
        at_boundary=at_boundary(best, result.search_space, tried) if best else (),
        searched=tuple(result.search_space.names),
        num_trials=len(steps_by_trial),
        reached_steps=reached_steps,
        end_step=last_measured(result, missed),
        study_end=result.end_step,
        ended_alone=ended_alone(result, measured.values()),
        complete=len(steps_by_trial),
        infeasible=sum(trial.status is Status.INFEASIBLE for trial in counted),
        incomplete=sum(trial.status is Status.INCOMPLETE for trial in counted),
        stuck=count_stuck(result, goal, steps_by_trial),
        best_of=best_of(reached_steps, len(steps_by_trial)) if is_random else None,
        # The points were chosen among all trials: they say nothing of a part that lacks some of them.
        confirmed=confirmed_steps(result, goal) if is_whole else None,
        confirmed_goal=result.confirmation.goal if result.confirmation else None,
        protocol=result.protocol,
        top_trials=tuple(trials[trial_id] for trial_id in top_trials(steps_by_trial)),
    )


def measured_steps(rows: Iterable[StepsToResult], headline: Headline) -> dict[int, float]:
    """Return a named answer by batch size, for those that have one above zero."""
    found = {row.batch_size: row.estimate(headline).value for row in rows}
    return {size: value for size, value in found.items() if value}


def top_trials(steps_by_trial: Mapping[int, int | None]) -> tuple[int, ...]:
    """Return the trials whose points are as good as the optimal one's, as far as one seed each can tell.

    They met the goal within 1.5 times the fewest steps, and are at most a quarter of all trials (three are always
    allowed): the spread of their metaparameters is the region to choose from. In the order of their steps; none where
    fewer than three are so close.

    >>> top_trials({0: 301, 1: None, 2: 200, 3: 210, 4: 250, 5: 260})
    (2, 3, 4)
    >>> top_trials({0: 301, 2: 200, 3: 210})
    ()
    """
    reached = sorted((step, trial_id) for trial_id, step in steps_by_trial.items() if step is not None)
    close = [trial_id for step, trial_id in reached if step <= TOP_FACTOR * reached[0][0]]
    return tuple(close[: max(MIN_TOP, len(steps_by_trial) // 4)]) if len(close) >= MIN_TOP else ()


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
