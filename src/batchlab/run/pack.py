"""Training one pack of trials to the end of their race, with checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from batchlab.core.confirmation import REPLICATE_STRIDE
from batchlab.core.measurement import Measurements
from batchlab.core.study import Study
from batchlab.engine.base import Point, Program, Trainer, can_train
from batchlab.engine.loop import train
from batchlab.errors import Interrupted
from batchlab.run.recorder import Recorder
from batchlab.run.resume import check_columns, entries, resumed_program
from batchlab.run.standing import Standing
from batchlab.search.race import Outcome
from batchlab.store.checkpoint import Checkpoint


@dataclass(frozen=True)
class PackTask:
    """One pack to train: picklable, so that any process on any machine can."""

    study: Study
    points: Sequence[Point]
    end_step: int
    """The race's end as known when the task was made."""

    resume: Checkpoint | None = None
    """Where the pack goes on from; None begins it."""

    checkpoint_seconds: float = 20.0
    """How often it is to save, at the most."""

    pause_step: int | None = None
    """Where the pack makes way for the others of its study, unless the race ends before; None is nowhere."""

    racing: frozenset[int] | None = None
    """Trials whose goal sets an end; None is all. A state to go on from may hold others, which set none."""

    stops_at_goal: bool = False
    """Replicates race against nobody: the pack ends once each has met the goal, and the rows after that go."""

    keeps_state: bool = False
    """Whether the pack's last state comes with its result."""

    @property
    def doing(self) -> str:
        """What a worker does for it, as a sentence may say, such as `training trial 3`."""
        return f"training {spell_trials(tuple(point.trial_id for point in self.points))}"


@dataclass(frozen=True)
class PackResult:
    """What a pack did."""

    outcomes: list[Outcome]
    measurements: Measurements
    wall_seconds: float
    trained_steps: int
    """Updates of all its trials together."""

    remark: str | None = None
    """A sentence for the user."""

    state: Checkpoint | None = None
    """The pack's last state, where it is to be stored."""


@dataclass(frozen=True)
class Hooks:
    """How a pack in training talks to the rest of the race."""

    end_step: Callable[[], int]
    """The study's end, as other packs have brought it nearer."""

    confirm_end: Callable[[int], None]
    """Tell the other packs that a trial of this one met the goal and stayed sound to the end it set."""

    progress: Callable[[Standing], None]
    """Told how far the pack is, after each evaluation."""

    should_stop: Callable[[], bool]
    save: Callable[[Checkpoint], None]
    """Keeps where the pack is: once it returns, the death of the worker costs no more than what comes after."""

    saved: Callable[[], None] = lambda: None
    """Told by a loop of the user's own, which keeps its own checkpoints, that it will go on from here."""

    started: Callable[[int], None] = lambda group: None
    """Told which group of processes such a loop has started, and 0 once that has ended."""

    worker: int = 0
    """The number of the process that trains, from 0."""


def train_pack(trainer: Trainer, task: PackTask, hooks: Hooks) -> PackResult | None:
    """Train the task's trials from their last checkpoint, or from the start, to the end of the race.

    Returns None at the task's pause, and raises Interrupted after a stop, once a checkpoint is written.
    """
    recorder, started, counted = Recorder(task.study), time.perf_counter(), 0
    saved = task.resume
    if saved is None:
        program = trainer.program(task.study, task.points)
    else:
        program = resumed_program(trainer, task.study, task.points, saved)
        recorder.restore(entries(saved, "rows."))
        hooks.progress(recorder.standing())
        started -= float(saved["seconds"])
        counted = int(saved.get("counted", 0))
    between_chunks = _Checkpoints(program, recorder, started, counted, task.checkpoint_seconds, hooks)

    def end_step() -> int:
        if task.stops_at_goal:
            return program.step if _have_all_met(program, recorder) else task.end_step
        return min(hooks.end_step(), _own_end(task, program, recorder))

    for evaluated in train(program, task.study, end_step, between_chunks):
        if saved is not None:
            check_columns(saved, evaluated)
        recorder.add(evaluated)
        hooks.progress(recorder.standing())
        may_pause = task.pause_step is not None and task.pause_step <= evaluated.step < end_step()
        if may_pause and can_train(program):
            between_chunks.save()
            return None
    if not task.stops_at_goal:
        hooks.confirm_end(_own_end(task, program, recorder))
    outcomes = [_outcome(point.trial_id, program, recorder, task.study) for point in task.points]
    trained_steps, seconds = _steps_of(program), time.perf_counter() - started
    state = between_chunks.last_state() if task.keeps_state else None
    return PackResult(outcomes, recorder.measurements(), seconds, trained_steps - counted, state=state)


def _have_all_met(program: Program, recorder: Recorder) -> bool:
    return all(trial_id in recorder.goal_steps for trial_id in program.trial_ids.tolist())


def _own_end(task: PackTask, program: Program, recorder: Recorder) -> int:
    """Return the end set by the best live trial; one that diverged after meeting the goal sets none."""
    live = set(program.trial_ids.tolist())
    racing = live if task.racing is None else live & task.racing
    goal_steps = [step for trial_id, step in recorder.goal_steps.items() if trial_id in racing]
    return task.study.end_step(min(goal_steps, default=None))


def _outcome(trial_id: int, program: Program, recorder: Recorder, study: Study) -> Outcome:
    """Return what became of a trial; one that has no examples left is known to the end of its study."""
    diverged_step = program.diverged.get(trial_id)
    last_step = program.step if can_train(program) else study.max_steps
    last_step = last_step if diverged_step is None else diverged_step
    return Outcome(trial_id, last_step, recorder.goal_steps.get(trial_id), diverged_step)


def _steps_of(program: Program) -> int:
    """Return the updates of all trials of a program together, since it began."""
    return program.step * len(program.trial_ids) + sum(program.diverged.values())


class _Checkpoints:
    """Called between chunks: saves the pack now and then, and stops it when asked to."""

    def __init__(
        self, program: Program, recorder: Recorder, started: float, counted: int, every: float, hooks: Hooks
    ) -> None:
        self._program, self._recorder, self._hooks = program, recorder, hooks
        self._started, self._every, self._saved = started, every, time.perf_counter()
        self._counted = counted
        """Updates that an earlier result has counted: the pack goes on from its last state."""

    def __call__(self) -> None:
        stopping = self._hooks.should_stop()
        if stopping or time.perf_counter() - self._saved > self._every:
            self.save()
        if stopping:
            raise Interrupted(f"stopped at step {self._program.step}")

    def save(self) -> None:
        self._hooks.save(self.state())
        self._saved = time.perf_counter()

    def state(self) -> Checkpoint:
        rows = self._recorder.measurements()
        assert rows.examples is not None
        columns = {"trial_id": rows.trial_id, "step": rows.step, "examples": rows.examples, **rows.metrics}
        return {
            **{f"program.{name}": array for name, array in self._program.state().items()},
            **{f"rows.{name}": column for name, column in columns.items()},
            "seconds": np.array(time.perf_counter() - self._started),
            "counted": np.array(self._counted),
        }

    def last_state(self) -> Checkpoint:
        """Return the state at the end: whoever goes on from it counts neither its updates nor its time again."""
        return {**self.state(), "seconds": np.array(0.0), "counted": np.array(_steps_of(self._program))}


def spell_trials(trial_ids: tuple[int, ...]) -> str:
    """Return some trials in a few words.

    >>> spell_trials((3,)), spell_trials((0, 1, 2, 7))
    ('trial 3', '4 trials from 0 to 7')
    """
    if min(trial_ids) >= REPLICATE_STRIDE:
        return f"{len(trial_ids)} replicates"
    if len(trial_ids) == 1:
        return f"trial {trial_ids[0]}"
    return f"{len(trial_ids)} trials from {min(trial_ids)} to {max(trial_ids)}"
