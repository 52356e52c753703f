"""Training one pack of trials to the end of their race, with checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from batchlab.core.clock import constant_examples
from batchlab.core.measurement import Measurements
from batchlab.core.study import Study
from batchlab.engine.base import Point, Program, Trainer, can_train
from batchlab.engine.loop import Evaluated, train
from batchlab.errors import BatchlabError, Interrupted, shown
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
    """Trials whose goal sets an end; None is all. A state that is taken up may hold others, which count no longer."""

    stops_at_goal: bool = False
    """Replicates race against nobody: the pack ends once each has met the goal, and the rows after that go."""

    keeps_state: bool = False
    """Whether the pack's last state comes with its result."""


@dataclass(frozen=True)
class PackResult:
    """What a pack did."""

    outcomes: list[Outcome]
    measurements: Measurements
    wall_seconds: float
    trained_steps: int
    """Updates of all its trials together."""

    remark: str | None = None
    """What the user should be told."""

    state: Checkpoint | None = None
    """How the pack was at its end, where that is to be kept."""


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


class UnusableCheckpointError(BatchlabError):
    """A checkpoint that is as it was written, and that the trainer cannot go on from; it says why."""


class Recorder:
    """The rows of a pack so far, and who has met the goal."""

    def __init__(self, study: Study) -> None:
        self._study, self._goal = study, study.goal
        self._rows: list[Evaluated] = []
        self.goal_steps: dict[int, int] = {}
        self.best_value: float | None = None
        self._num_evaluations, self._evaluation_seconds = 0, 0.0

    def add(self, evaluated: Evaluated) -> None:
        """Keep the metrics of the live trials; a step that is there already, from before a pause, is left as it is."""
        if self._rows and evaluated.step <= self._rows[-1].step:
            return
        if evaluated.examples is None:
            evaluated = replace(evaluated, examples=constant_examples(evaluated.step, self._study.batch_size))
        self._rows.append(evaluated)
        values = evaluated.column(self._goal.metric)
        for trial_id in evaluated.trial_ids[self._goal.is_met(values)].tolist():
            self.goal_steps.setdefault(trial_id, evaluated.step)
        self.best_value = self._goal.best(values, self.best_value)
        self._num_evaluations += 1
        self._evaluation_seconds += evaluated.seconds

    @property
    def last_step(self) -> int:
        """The step of the last row, -1 where there is none."""
        return self._rows[-1].step if self._rows else -1

    @property
    def last_examples(self) -> int:
        """The examples of the last row, 0 where there is none."""
        return self._rows[-1].examples or 0 if self._rows else 0

    def standing(self) -> Standing:
        """Return how far the pack is, as of its last evaluation."""
        return Standing(
            step=self._rows[-1].step,
            num_live=len(self._rows[-1].trial_ids),
            best_steps=min(self.goal_steps.values(), default=None),
            best_value=self.best_value,
            num_evaluations=self._num_evaluations,
            evaluation_seconds=self._evaluation_seconds,
        )

    def measurements(self) -> Measurements:
        """Return all rows as columns, sorted by trial and step; NaN where a metric was not measured."""
        trial_id = np.concatenate([row.trial_ids for row in self._rows])
        num_live = [len(row.trial_ids) for row in self._rows]
        step = np.repeat([row.step for row in self._rows], num_live)
        examples = np.repeat(np.array([row.examples for row in self._rows], dtype=np.int64), num_live)
        order = np.lexsort((step, trial_id))
        names = dict.fromkeys(name for row in self._rows for name in row.metrics)
        metrics = {name: np.concatenate([row.column(name) for row in self._rows])[order] for name in names}
        return Measurements(trial_id[order], step[order], metrics, examples[order])

    def restore(self, columns: Mapping[str, np.ndarray]) -> None:
        """Take up the rows of a checkpoint; one at the end of a budget that has grown since is no longer evaluated."""
        names = [name for name in columns if name not in ("trial_id", "step", "examples")]
        evaluated = set(self._study.evaluation.steps(self._study.max_steps))
        for step in np.unique(columns["step"]):
            if int(step) not in evaluated:
                continue
            rows = columns["step"] == step
            metrics = {name: columns[name][rows] for name in names}
            examples = int(columns["examples"][rows][0]) if "examples" in columns else None  # not before format 4
            self.add(Evaluated(int(step), columns["trial_id"][rows], metrics, examples=examples))
        self._num_evaluations = 0


def train_pack(trainer: Trainer, task: PackTask, hooks: Hooks) -> PackResult | None:
    """Train the task's trials from their last checkpoint, or from the start, to the end of the race.

    Returns None at the task's pause, and raises Interrupted after a stop, once a checkpoint is written.
    """
    recorder, started, counted = Recorder(task.study), time.perf_counter(), 0
    saved = task.resume
    if saved is None:
        program = trainer.program(task.study, task.points)
    else:
        program = _restored(trainer, task, saved)
        recorder.restore(_part(saved, "rows."))
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
            _check_columns(saved, evaluated)
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


def _restored(trainer: Trainer, task: PackTask, saved: Checkpoint) -> Program:
    """Return the program as a checkpoint left it; UnusableCheckpointError where the trainer cannot."""
    try:
        program = trainer.program(task.study, task.points, _part(saved, "program."))
        problem = _state_problem(program, task, saved)
    except BatchlabError:
        raise
    except Exception as error:
        trainer.program(task.study, task.points)  # where this fails as well, the checkpoint is not to blame
        problem = f"{type(error).__name__}: {error}"
    if problem is not None:
        raise UnusableCheckpointError(shown(problem))
    return program


def _state_problem(program: Program, task: PackTask, saved: Checkpoint) -> str | None:
    """Return what of a restored program is not as its checkpoint, or cannot be."""
    kinds = [
        {name: (array.dtype, array.shape) for name, array in state.items()}
        for state in (_part(saved, "program."), program.state())
    ]
    if "examples" not in kinds[0]:  # as in every checkpoint from before lab format 4
        kinds[1].pop("examples", None)
    if kinds[0] != kinds[1]:
        return "its arrays have other names, shapes or types than the trainer's"
    live, diverged = set(program.trial_ids.tolist()), program.diverged
    if live | set(diverged) != {point.trial_id for point in task.points}:
        return "it tells of other trials"
    last = int(saved["rows.step"].max())
    if not last <= program.step <= min(task.study.max_steps, task.study.evaluation.first_step_from(last + 1)):
        return f"it is at step {program.step}, and its last row at {last}"
    if not live <= set(saved["rows.trial_id"][saved["rows.step"] == last].tolist()):
        return f"a trial in training has no row of step {last}"
    if not all(0 < step <= program.step for step in diverged.values()):
        return "a trial diverged at a step that it has not trained to"
    return None


def _check_columns(saved: Checkpoint, evaluated: Evaluated) -> None:
    """Raise UnusableCheckpointError where the rows of a checkpoint could not hold what the program measures."""
    for name, values in evaluated.metrics.items():
        held = saved.get(f"rows.{name}", values).dtype
        if np.result_type(held, values.dtype) != held:
            raise UnusableCheckpointError(f"{name} is {held}, and the program's is {values.dtype}")


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


def _part(arrays: Checkpoint, prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


class _Checkpoints:
    """Called between chunks: saves the pack now and then, and stops it when asked to."""

    def __init__(
        self, program: Program, recorder: Recorder, started: float, counted: int, every: float, hooks: Hooks
    ) -> None:
        self._program, self._recorder, self._hooks = program, recorder, hooks
        self._started, self._every, self._saved = started, every, time.perf_counter()
        self._counted = counted
        """Updates that were told with an earlier result: the pack goes on from its last state."""

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
