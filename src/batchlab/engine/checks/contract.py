"""Whether a trainer does what `engine.base` asks of it: tried with a few updates, each breach told in one sentence.

`check_promises` asks the trainer alone and trains nothing. `check_program` trains: one point twice and once more
from its own state, which must come to the same, then two points at once.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from batchlab.core.study import Study
from batchlab.engine.base import Point, Program, Trainer, UpTo, can_train, check_study, wanted_pack_size
from batchlab.engine.checks.measured import check_measured, class_name, typed
from batchlab.engine.checks.methods import check_program_methods, check_trainer_methods
from batchlab.engine.checks.study import check_goal
from batchlab.engine.loop import advance
from batchlab.errors import BatchlabError, SpecError, TrainerError, unknown_name

CHECKED_STEPS = (2, 4)
"""Where programs are evaluated, beside step 0; the state is taken at the first."""

QUICK_SECONDS = 10.0
"""Where the first run has taken longer, the others are left out."""

TWICE_TOLERANCE = 1e-5
"""Two runs of one point agree to rounding: additions on a GPU may come in any order."""

PACK_TOLERANCE = 1e-2
"""A trial alone and in a pack: other kernels, and a rounding may tip one example of a small set."""


def check_promises(trainer: Trainer, study: Study) -> None:
    """Raise TrainerError or SpecError where the trainer has not the methods, or does not measure the study's goal."""
    name = class_name(trainer)
    if inspect.isclass(trainer):
        raise TrainerError(f"The trainer is the class {name}, not an object of it: give {name}().")
    check_trainer_methods(trainer)
    try:
        check_study(trainer, study)
    except BatchlabError:
        raise
    except Exception as error:
        raise SpecError(f"{name}.check refuses batch size {study.batch_size}: {error}") from error
    check_goal(study.goal, _promised(trainer, study))
    _check_pack_size(trainer, study)


def check_program(trainer: Trainer, study: Study, points: Sequence[Point]) -> None:
    """Raise TrainerError at the first thing that a program of these points does against the contract."""
    started = time.perf_counter()
    promised = _promised(trainer, study)

    def start(points: Sequence[Point], state: Mapping[str, np.ndarray] | None = None) -> _Watched:
        return _Watched(trainer.program(study, points, state), study, promised, points)

    first = start(points[:1])
    first.check_start()
    rows, state = _train(first)
    if time.perf_counter() - started > QUICK_SECONDS:
        return
    _check_repeats(rows, start(points[:1]))
    _check_resumes(rows, state, lambda: start(points[:1], state), first.name)
    if wanted_pack_size(trainer, study) != 1 and len(points) > 1 and study.trials > 1:
        _check_pack(rows, lambda: start(points[:2]), first.name)


def _promised(trainer: Trainer, study: Study) -> tuple[str, ...]:
    metrics = trainer.metrics(study)
    if not isinstance(metrics, tuple | list) or not metrics or not all(isinstance(each, str) for each in metrics):
        raise TrainerError(f'{class_name(trainer)}.metrics(study) is {typed(metrics)}: give names, ("val/loss",).')
    return tuple(metrics)


def _check_pack_size(trainer: Trainer, study: Study) -> None:
    size = wanted_pack_size(trainer, study)
    number = size.most if isinstance(size, UpTo) else size
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        place = "pack_size(study)" if callable(getattr(trainer, "pack_size", None)) else "pack_size"
        raise TrainerError(
            f"{class_name(trainer)}.{place} is {typed(size)}: give how many trials train together, a whole "
            "number from 1, or batchlab.UpTo(most) to have it measured."
        )


@dataclass(frozen=True)
class _Row:
    """What a program was at one of the checked steps."""

    step: int
    diverged: dict[int, int]
    values: dict[str, np.ndarray]
    trial_ids: np.ndarray


def _train(program: _Watched) -> tuple[list[_Row], dict[str, np.ndarray]]:
    """Return the rows at the checked steps, and the state at the middle one."""
    middle, end = (min(step, program.study.max_steps) for step in CHECKED_STEPS)
    rows = [program.row()]
    program.train_to(middle)
    rows.append(program.row())
    state = program.state()
    program.train_to(end)
    return [*rows, program.row()], state


def _check_repeats(rows: list[_Row], again: _Watched) -> None:
    for before, now in zip(rows, _train(again)[0], strict=True):
        difference = _difference(before, now, TWICE_TOLERANCE)
        if difference:
            raise TrainerError(
                f"{again.name}: the same point trained twice is not the same: {difference}. Let all that is random "
                "follow from study.seed, the trial's number and the step, or no run can be resumed:"
                " np.random.default_rng([study.seed, trial_id, step])."
            )


def _check_resumes(rows: list[_Row], state: dict[str, np.ndarray], restart: Any, name: str) -> None:
    """Check that a program made from `state` goes on where it was taken; from no state it begins anew."""
    try:
        restored: _Watched = restart()
    except Exception as error:
        raise TrainerError(
            f"program(study, points, state) fails on what {name}.state() returned ({type(error).__name__}: {error}): "
            "set `step` and all else from it, or return {} to begin anew after a stop."
        ) from error
    _, middle, end = rows
    expected = middle.step if state else 0
    if restored.step != expected:
        raise TrainerError(
            f"{name}.state() was taken at step {middle.step}, but the program made from it is at step {restored.step}: "
            "keep `step` in the state and set it from there."
        )
    followed = [(middle, restored.row())] if state else []
    restored.train_to(middle.step)
    restored.train_to(end.step)
    for before, now in [*followed, (end, restored.row())]:
        difference = _difference(before, now, TWICE_TOLERANCE)
        if difference:
            raise TrainerError(
                f"{name}: a program made from state() does not go on as the one before: {difference}. "
                "Keep all that training changes in the state, and set it from there."
            )


def _check_pack(rows: list[_Row], start: Any, name: str) -> None:
    """Check that two points train at once, the first as it did alone."""
    way_out = "set engine.pack_size = 1 in the sweep, or give the trainer `pack_size = 1`"
    try:
        pair: _Watched = start()
        pair.check_start()
        packed = [pair.row()]
        pair.train_to(rows[1].step)
        packed.append(pair.row())
    except Exception as error:
        told = str(error).rstrip(".") if isinstance(error, TrainerError) else f"{type(error).__name__}: {error}"
        raise TrainerError(f"{name} trains one point, but not two at once ({told}): {way_out}.") from error
    for alone, together in zip(rows, packed, strict=False):
        difference = _difference(alone, together, PACK_TOLERANCE)
        if difference:
            raise TrainerError(
                f"{name}: a trial beside another is not the trial alone: {difference}. Let nothing depend on which "
                f"trials train together, or {way_out}."
            )


def _difference(before: _Row, now: _Row, tolerance: float) -> str | None:
    """Say in what two rows of the first trial differ, or return None."""
    if len(before.trial_ids) == 0:
        return None if before.diverged.items() <= now.diverged.items() else f"diverged at {now.diverged}"
    trial_id = before.trial_ids[0]
    if trial_id not in now.trial_ids:
        return f"trial {trial_id} diverged at step {now.diverged.get(int(trial_id))} the second time"
    at = int(np.flatnonzero(now.trial_ids == trial_id)[0])
    for name in before.values.keys() & now.values.keys():
        first, second = float(before.values[name][0]), float(now.values[name][at])
        if not np.isclose(first, second, rtol=tolerance, atol=0, equal_nan=True):
            return f"{name} at step {now.step} is {first:.9g} and {second:.9g}"
    return None


class _Watched:
    """A program of which each answer is looked at."""

    def __init__(self, program: Program, study: Study, promised: Sequence[str], points: Sequence[Point]) -> None:
        self.name, self.study, self._program, self._promised = class_name(program), study, program, promised
        self._ids = sorted(point.trial_id for point in points)
        self._check_members()
        check_program_methods(program)

    @property
    def step(self) -> int:
        return int(self._program.step)

    def check_start(self) -> None:
        """Check a program that was made without a state."""
        if self.step != 0:
            raise TrainerError(f"{self.name} begins at step {self.step}, not at 0: without a state none is done.")
        if self._program.trial_ids.tolist() != self._ids:
            raise TrainerError(
                f"{self.name}.trial_ids is {self._program.trial_ids.tolist()} at the start, not {self._ids}: "
                "the trial_id of each point, in ascending order."
            )

    def row(self) -> _Row:
        """Return the program as it is now, evaluated if a trial is left."""
        ids = np.array(self._program.trial_ids)
        return _Row(self.step, dict(self._program.diverged), self._evaluate() if len(ids) else {}, ids)

    def train_to(self, target: int) -> None:
        """Train to a step, or until no trial is left."""
        while self.step < target and can_train(self._program):
            advance(self._program, target)
            self._check_members()

    def state(self) -> dict[str, np.ndarray]:
        """Return a copy of the state, as a checkpoint would hold it."""
        state = self._program.state()
        if not isinstance(state, dict):
            raise TrainerError(f"{self.name}.state() is {typed(state)}: give a dict of NumPy arrays by name.")
        for key, value in state.items():
            if not isinstance(key, str) or np.asarray(value).dtype.kind not in "biufcUSmM":
                raise TrainerError(
                    f"{self.name}.state()[{key!r}] is {typed(value)}: give a NumPy array, which a checkpoint can hold."
                )
        return {key: np.array(value) for key, value in state.items()}

    def _check_members(self) -> None:
        for member in ("step", "trial_ids", "diverged", "evaluate", "advance", "state"):
            if not hasattr(self._program, member):
                raise TrainerError(f"{self.name} has no `{member}`: see the table in docs/extending.md.")
        self._check_counters()
        live, diverged = set(self._program.trial_ids.tolist()), self._program.diverged
        for trial_id in self._ids:
            if (trial_id in live) == (trial_id in diverged):
                raise TrainerError(
                    f"trial {trial_id} is in {'both' if trial_id in live else 'neither'} of `trial_ids` and `diverged` "
                    f"of {self.name} at step {self.step}: a trial trains, or it has left and `diverged` says when."
                )

    def _check_counters(self) -> None:
        step, trial_ids, diverged = self._program.step, self._program.trial_ids, self._program.diverged
        if not isinstance(step, int | np.integer) or isinstance(step, bool):
            raise TrainerError(f"{self.name}.step is {typed(step)}: give the number of updates, a whole number.")
        if not isinstance(trial_ids, np.ndarray) or trial_ids.ndim != 1 or trial_ids.dtype.kind not in "iu":
            raise TrainerError(
                f"{self.name}.trial_ids is {typed(trial_ids)}: give a one-dimensional NumPy array of whole numbers."
            )
        is_dict = isinstance(diverged, dict)
        if not is_dict or not all(isinstance(each, int) for pair in diverged.items() for each in pair):
            raise TrainerError(
                f"{self.name}.diverged is {typed(diverged)}: give a dict from trial id to step, both whole numbers."
            )

    def _evaluate(self) -> dict[str, np.ndarray]:
        metrics: Any = self._program.evaluate()
        for name in metrics if isinstance(metrics, dict) else ():
            if name not in self._promised:
                raise TrainerError(
                    f"{self.name}.evaluate() gives a metric that metrics(study) has not named: "
                    f"{unknown_name('metric', str(name), self._promised)}"
                )
        check_measured(self._program, metrics, self.study)
        return {name: np.array(values, dtype=np.float64) for name, values in metrics.items()}
