"""How far the studies of a sweep are, and how long the rest may take."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from batchlab.core.duration import spell_seconds
from batchlab.core.evaluation import Evaluation
from batchlab.run.confirm_run import ConfirmRun
from batchlab.run.standing import Standing
from batchlab.run.study_run import StudyRun

STEP_OVERHEAD = 0.002
"""Seconds that a step costs at any batch size, for a guess: below it a smaller batch is not taken to be faster."""

FAR_LESS = 0.5
"""Where no more than this share of a bound is to be expected, what is expected is said beside it."""


@dataclass
class _Pack:
    """A pack in training: its last report, and when that came."""

    standing: Standing
    told: float


@dataclass
class _Rate:
    """Seconds for each of something, over all that was seen of it."""

    seconds: float = 0.0
    count: int = 0

    def add(self, seconds: float, count: int) -> None:
        self.seconds, self.count = self.seconds + max(0.0, seconds), self.count + count

    @property
    def each(self) -> float | None:
        return self.seconds / self.count if self.count else None


class StudyProgress:
    """How far one study is, and how long the rest of it may take.

    Steps and evaluations are timed apart: at its start a trial is evaluated at nearly every step, later hardly ever.
    """

    def __init__(self, run: StudyRun) -> None:
        self.run = run
        self.is_measuring = False
        """Whether a worker finds out how many trials to train together."""

        self.seconds_per_trial_step: float | None = None
        self.guessed_seconds_per_trial_step: float | None = None
        self.seconds_per_evaluation: float | None = None
        """Of one trial."""

        self.best_value: float | None = None
        """The best value of the goal's metric that was seen in this run."""

        self._training, self._evaluating = _Rate(), _Rate()
        self._packs: dict[str, _Pack] = {}
        self._best_steps: int | None = None

    def start(self, name: str, num_trials: int) -> None:
        """A pack begins, or goes on after a pause."""
        before = self._packs[name].standing if name in self._packs else Standing(0, num_trials)
        self._packs[name] = _Pack(Standing(before.step, before.num_live), time.perf_counter())

    def advance(self, name: str, standing: Standing) -> None:
        """A pack has been evaluated."""
        before, now = self._packs[name], time.perf_counter()
        if standing.step > before.standing.step > 0:  # the start of a pack is slow, and not counted
            self._count(before.standing, standing, now - before.told)
        self._packs[name] = _Pack(standing, now)
        if standing.best_steps is not None:
            self._best_steps = min(standing.best_steps, self._best_steps or standing.best_steps)
        if standing.best_value is not None:
            self.best_value = self.run.study.goal.best(np.array([standing.best_value]), self.best_value)

    def _count(self, before: Standing, now: Standing, seconds: float) -> None:
        num_live = max(1, now.num_live)
        evaluating = now.evaluation_seconds - before.evaluation_seconds
        self._evaluating.add(evaluating, (now.num_evaluations - before.num_evaluations) * num_live)
        self._training.add(seconds - evaluating, (now.step - before.step) * num_live)
        self.seconds_per_trial_step = self._training.each
        self.seconds_per_evaluation = self._evaluating.each

    def finish(self, name: str) -> None:
        """A pack has ended."""
        del self._packs[name]

    @property
    def step(self) -> int | None:
        """How far the pack is that is the furthest; None where none has begun."""
        return max((pack.standing.step for pack in self._packs.values()), default=None)

    @property
    def best_steps(self) -> int | None:
        """The fewest steps to the goal so far; those of replicates are left out."""
        if self.run.is_searched:
            return self.run.best_steps
        return min((steps for steps in (self._best_steps, self.run.best_steps) if steps is not None), default=None)

    @property
    def num_done(self) -> int:
        """Trials that have trained to the end without diverging."""
        return sum(outcome.diverged_step is None for outcome in self.run.outcomes.values())

    @property
    def trained_steps(self) -> int:
        """How far the trial is that has trained the longest, finished ones included."""
        return max([self.step or 0, *(outcome.last_step for outcome in self.run.outcomes.values())])

    def seconds_left(self, goal_steps: int | None = None) -> float | None:
        """Return the processor time that the study may still need: at most, while no trial has met the goal.

        With `goal_steps`: were the first to meet it there, where none has yet.
        """
        if self.run.is_finished:
            return 0.0
        if self.seconds_per_trial_step is None and self.guessed_seconds_per_trial_step is None:
            return None
        if self.run.confirm_run is not None:
            return self._confirmation_left(self.run.confirm_run)
        study, best_steps = self.run.study, goal_steps if self.best_steps is None else self.best_steps
        num_begun = self.num_done + sum(pack.standing.num_live for pack in self._packs.values())
        replicate = study.max_steps if best_steps is None else study.replicate_steps(best_steps)
        search = self._left(study.end_step(best_steps), study.trials - num_begun)
        return search + self.run.num_replicates * self._seconds(0, replicate)

    def _confirmation_left(self, confirm: ConfirmRun) -> float:
        """Return what the replicates may still need: they stop at the goal, few later than expected."""
        num_begun = confirm.num_done + sum(pack.standing.num_live for pack in self._packs.values())
        expected = self.run.study.replicate_steps(self.best_steps or confirm.end_step)
        is_late = (self.step or 0) >= expected
        return self._left(confirm.end_step if is_late else expected, confirm.num_replicates - num_begun)

    def _left(self, end_step: int, num_waiting: int) -> float:
        """Return what packs that have begun need to a step, and those that wait."""
        standings = [pack.standing for pack in self._packs.values()]
        running = sum(standing.num_live * self._seconds(standing.step, end_step) for standing in standings)
        return running + max(0, num_waiting) * self._seconds(0, end_step)

    def _seconds(self, start: int, end: int) -> float:
        """Return what one trial needs from one step to another."""
        seconds = self.seconds_per_trial_step or self.guessed_seconds_per_trial_step or 0.0
        evaluations = count_evaluations(self.run.study.evaluation, start, end)
        return max(0, end - start) * seconds + evaluations * (self.seconds_per_evaluation or 0.0)


def count_evaluations(evaluation: Evaluation, start: int, end: int) -> int:
    """Return how many evaluated steps there are after `start`, up to `end`.

    >>> count_evaluations(Evaluation(growth=1.5), 1, 10)  # 2, 3, 5, 8, 12 is past it
    4
    >>> count_evaluations(Evaluation(every=10), 5, 40)
    4
    """
    if evaluation.growth is None and evaluation.every is not None:
        return max(0, end // evaluation.every - start // evaluation.every)
    count, step = 0, evaluation.next_step(start)
    while step <= end:
        count, step = count + 1, evaluation.next_step(step)
    return count


def time_left(studies: Sequence[StudyProgress], num_workers: int) -> str:
    """Return how long the rest may take, as a person says it: an upper bound while a goal is unmet.

    Where other batch sizes have met the goal so soon that far less is to be expected, it is said how long.
    """
    _guess_rates(studies)
    left = [seconds for study in studies if (seconds := study.seconds_left()) is not None]
    if len(left) < len(studies):
        return "unknown time"
    spelled = spell_seconds(sum(left) / num_workers)
    if not any(study.best_steps is None and not study.run.is_finished for study in studies):
        return f"about {spelled}"
    likely = _likely_seconds(studies)
    is_far_less = likely <= FAR_LESS * sum(left)
    return f"at most {spelled}" + (f", perhaps {spell_seconds(likely / num_workers)}" if is_far_less else "")


def _likely_seconds(studies: Sequence[StudyProgress]) -> float:
    """Return what is left if the goal is met where the nearest batch size that has met it lets expect.

    Where none has, or one has ended without, nothing can be expected: infinite.
    """
    goals = {study.run.study.batch_size: steps for study in studies if (steps := study.best_steps) is not None}
    if not goals or any(study.run.is_finished and study.best_steps is None for study in studies):
        return math.inf
    likely = 0.0
    for study in studies:
        steps, _ = steps_by_neighbour(study.run.study.batch_size, goals)
        likely += study.seconds_left(max(steps, study.trained_steps)) or 0.0
    return likely


def steps_by_neighbour(batch_size: int, goals: Mapping[int, int]) -> tuple[int, int]:
    """Return the steps to the goal that the nearest known batch size lets expect, and which that is.

    A batch that is k times as small needs at most k times the steps, roughly; a larger one no more.

    >>> steps_by_neighbour(16, {64: 100, 512: 40})
    (400, 64)
    """
    nearest = nearest_size(batch_size, list(goals))
    return math.ceil(goals[nearest] * max(1.0, nearest / batch_size)), nearest


def nearest_size(batch_size: int, known: Sequence[int]) -> int:
    """Return the known batch size that is the nearest, by ratio.

    >>> nearest_size(16, [1, 64, 512])
    64
    """
    return min(known, key=lambda other: abs(math.log(other / batch_size)))


def _guess_rates(studies: Sequence[StudyProgress]) -> None:
    """Give studies that have not begun the rates of the nearest one that has, by batch size."""
    known = {study.run.study.batch_size: study for study in studies if study.seconds_per_trial_step is not None}
    for study in studies:
        if study.seconds_per_trial_step is None and known:
            size = study.run.study.batch_size
            nearest_known = nearest_size(size, list(known))
            nearest = known[nearest_known]
            seconds = nearest.seconds_per_trial_step or 0.0
            scaled = seconds * size / nearest_known
            study.guessed_seconds_per_trial_step = max(scaled, min(seconds, STEP_OVERHEAD))
            study.seconds_per_evaluation = nearest.seconds_per_evaluation
