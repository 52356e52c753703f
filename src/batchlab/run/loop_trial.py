"""Following one trial of a loop of the user's own to the end of its race."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import numpy as np

from batchlab.engine.loop import Evaluated
from batchlab.errors import Interrupted, TrainerError
from batchlab.loops.base import LoopTrainer, name_of
from batchlab.loops.journal import Journal
from batchlab.loops.report import Report
from batchlab.loops.rows import Rows
from batchlab.run.pack import Hooks, PackResult, PackTask
from batchlab.run.recorder import Recorder
from batchlab.search.race import Outcome

MOST_WITHOUT_GOAL = 1000
"""A loop that has not reported the goal's metric after so many rows is taken never to report it."""


ENDED = "ended"


def follow_trial(trainer: LoopTrainer, task: PackTask, hooks: Hooks, place: Path) -> PackResult:
    """Follow the task's one trial from its last report, or from the start, to the end of the race.

    `place` is the trial's folder in the lab.

    Raises Interrupted after a stop: all reports so far are written down, and the loop is ended.
    """
    (point,), study = task.points, task.study
    journal, trial = Journal(place, study, point.trial_id), _Trial(task, hooks, trainer)
    known = (journal.reports() if trainer.resumes else None) or []
    journal.begin(known)
    for report in known:
        trial.take(report)
    trial.rows.resume()
    start = known[-1].offset if known else 0
    with closing(trainer.reports(study, point, place, hooks.worker, start, hooks.started)) as reports:
        while not trial.is_over:
            if hooks.should_stop():
                raise Interrupted(f"stopped at step {trial.rows.step}")
            said = next(reports, ENDED)
            if isinstance(said, Report):
                journal.add(said)
                trial.take(said)
                if trainer.resumes:
                    hooks.saved()
            elif said is ENDED:
                trial.end()
    result = trial.result(journal.seconds)
    journal.close()
    if not task.stops_at_goal and trial.diverged_step is None:
        hooks.confirm_end(trial.own_end)
    return result


class _Trial:
    """The rows of one trial, until its race is over, it diverged or its loop has ended."""

    def __init__(self, task: PackTask, hooks: Hooks, trainer: LoopTrainer) -> None:
        self._task, self._hooks, self._trainer, self._study = task, hooks, trainer, task.study
        self._id, self._goal = task.points[0].trial_id, task.study.goal
        self._recorder, self.rows = Recorder(task.study), Rows(task.study.goal.metric)
        self._has_ended, self._num_rows = False, 0
        self._examples: int | None = None  # the last that the loop has told
        self.diverged_step: int | None = None

    @property
    def own_end(self) -> int:
        """The end that the trial sets itself."""
        may_set = self._task.racing is None or self._id in self._task.racing
        return self._study.end_step(self._recorder.goal_steps.get(self._id) if may_set else None)

    @property
    def _end(self) -> int:
        if self._task.stops_at_goal:
            return self._recorder.goal_steps.get(self._id, self._task.end_step)
        return min(self._hooks.end_step(), self.own_end)

    @property
    def is_over(self) -> bool:
        """Whether no later report of the loop can change the result."""
        return self._has_ended or self.diverged_step is not None or self._last >= self._end

    @property
    def _last(self) -> int:
        """The last step whose row is complete: that is known once a later one has begun."""
        return max(self._recorder.last_step, self.rows.step - 1)

    def take(self, report: Report) -> None:
        """Take a report of the loop."""
        try:
            row = self.rows.add(report)
        except TrainerError as error:
            raise TrainerError(f"{self._name}: {error}") from None
        self._keep(row)
        self._keep(self.rows.ready(self._end))
        if self._num_rows > MOST_WITHOUT_GOAL and not self.rows.has_metric:
            raise self._without_metric()

    def end(self) -> None:
        """Take note that the loop has ended."""
        self._keep(self.rows.end())
        self._has_ended = True

    def _keep(self, row: Report | None) -> None:
        if row is None or self.diverged_step is not None or row.step > self._end:
            return
        self._num_rows += 1
        if not math.isfinite(row.metrics.get(self._goal.metric, 0.0)):
            self.diverged_step = row.step
            return
        metrics = {name: np.array([value]) for name, value in row.metrics.items()}
        metrics.setdefault(self._goal.metric, np.array([math.nan]))  # a race may end before it is measured at all
        self._examples = self._examples if row.examples is None else row.examples
        if self._examples is not None and self._examples < self._recorder.last_examples:
            raise TrainerError(
                f"{self._name}: examples = {self._examples} at step {row.step} are fewer than the "
                f"{self._recorder.last_examples} before it: report all that were seen so far, at each step or at none."
            )
        self._recorder.add(Evaluated(row.step, np.array([self._id]), metrics, examples=self._examples))
        self._hooks.progress(self._recorder.standing())

    def result(self, seconds: float) -> PackResult:
        """Return what the trial did; TrainerError where it never reported the goal's metric."""
        is_cut_short = not self._has_ended and self._end < self._study.max_steps  # it might have told it later
        if not (self.rows.has_metric or is_cut_short):
            raise self._without_metric()
        if self._recorder.last_step < 0:  # diverged, or out of the race, before anything was measured
            unknown = {self._goal.metric: np.array([math.nan])}
            self._recorder.add(Evaluated(0, np.array([self._id]), unknown))
        known = max(self._end, self._recorder.last_step)  # the end may have come nearer since the last row
        last = known if self.diverged_step is None else self.diverged_step
        outcome = Outcome(self._id, last, self._recorder.goal_steps.get(self._id), self.diverged_step)
        rows = self._recorder.measurements()
        return PackResult([outcome], rows, seconds, trained_steps=int(rows.step[-1]), remark=self._trainer.remark)

    def _without_metric(self) -> TrainerError:
        names = ", ".join(sorted(self.rows.names))
        if not names:
            way = self._trainer.example(self._goal.metric)
            return TrainerError(f"{self._name} has ended and reported nothing: {way}.")
        return TrainerError(f"{self._name} has reported {names}, but never {self._goal.metric}, the goal's metric.")

    @property
    def _name(self) -> str:
        return name_of(self._study, self._id)
