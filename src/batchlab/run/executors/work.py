"""What a worker does with a task, wherever it works."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from batchlab.engine.base import Trainer
from batchlab.errors import BatchlabError, Interrupted, TrainerError, TrialError, shown, spelled
from batchlab.loops.base import LoopTrainer
from batchlab.run.executors.executor import Event, Failed, Finished, Paused, Progress, Saved, Stopped, Task, TaskKey
from batchlab.run.loop_trial import follow_trial
from batchlab.run.pack import Hooks, PackResult, PackTask, train_pack
from batchlab.run.standing import Standing
from batchlab.store.checkpoint import Checkpoint

PROGRESS_SECONDS = 0.2


class Shared(Protocol):
    """What the workers of a run tell each other: `run.executors.noticeboard` says how those of one machine do."""

    def end_step(self, batch_size: int) -> int:
        """Return the nearest end of a study's race that any worker has found."""
        ...

    def lower(self, batch_size: int, worker: int, end_step: int) -> None:
        """Tell an end of a study's race."""
        ...

    def is_stopping(self) -> bool:
        """Return whether the workers are to stop."""
        ...

    def note_program(self, worker: int, group: int) -> None:
        """Tell which group of processes a worker has started, 0 for none: they are to end with it."""
        ...


class Keeper(Protocol):
    """Who keeps a pack's checkpoints: its shelf, or whoever passes them on to it."""

    @property
    def loop(self) -> Path | None:
        """The folder of a trial of a loop of the user's own."""
        ...

    def save(self, checkpoint: Checkpoint) -> None:
        """Return once the checkpoint is stored."""
        ...


@dataclass(frozen=True)
class Bench:
    """What a worker needs for its tasks, beside the task itself."""

    number: int
    """Its own, from 0."""

    content: Callable[[], tuple[Trainer, Shared]]
    """Unpacks who trains, and what is shared; it may fail, and then a task does."""

    tell: Callable[[Event], None]


def attempt(key: TaskKey, task: Task, bench: Bench, keeper: Keeper | None) -> Event:
    """Do a task and return how it ended; a pack comes with who keeps its checkpoints."""
    try:
        trainer, shared = bench.content()
        if not isinstance(task, PackTask):
            return Finished(key, task.perform(trainer))
        assert keeper is not None
        result = _train(task, trainer, _hooks(key, task, bench, shared, keeper), keeper)
        return Paused(key) if result is None else Finished(key, result)
    except Interrupted:
        return Stopped(key)
    except BatchlabError as error:
        return Failed(key, error)
    except SystemExit as error:
        return Failed(key, TrainerError(_exited(task, error)))
    except Exception:
        return Failed(
            key, TrialError(f"A trial failed at batch size {task.study.batch_size}:\n{traceback.format_exc()}")
        )


def _exited(task: Task, error: SystemExit) -> str:
    code = "" if error.code is None else shown(spelled(error.code))
    return (
        f"At batch size {task.study.batch_size}, while {task.doing}: sys.exit({code}) was called, which would end the "
        "worker. Training code must not do that; let it raise an error."
    )


def as_told(error: Exception) -> BatchlabError:
    """Return the error of one of several workers of a trial as one that can be sent to others."""
    if isinstance(error, BatchlabError):
        return error
    return TrialError(f"A trial failed in one of its workers:\n{''.join(traceback.format_exception(error))}")


def _train(task: PackTask, trainer: Trainer, hooks: Hooks, keeper: Keeper) -> PackResult | None:
    if not task.stops_at_goal:
        hooks.confirm_end(task.end_step)
    if task.study.workload.is_own_loop:
        assert keeper.loop is not None
        return follow_trial(cast("LoopTrainer", trainer), task, hooks, keeper.loop)
    return train_pack(trainer, task, hooks)


def _hooks(key: TaskKey, task: PackTask, bench: Bench, shared: Shared, keeper: Keeper) -> Hooks:
    size, told, has_saved = task.study.batch_size, 0.0, False

    def tell(standing: Standing) -> None:
        nonlocal told
        if time.perf_counter() - told > PROGRESS_SECONDS:
            told = time.perf_counter()
            bench.tell(Progress(key, standing))

    def save(checkpoint: Checkpoint) -> None:
        keeper.save(checkpoint)
        bench.tell(Saved(key))

    def note_saved() -> None:
        nonlocal has_saved
        if not has_saved:  # a loop may report a thousand times a second
            has_saved = True
            bench.tell(Saved(key))

    return Hooks(
        end_step=lambda: shared.end_step(size),
        confirm_end=lambda end_step: shared.lower(size, bench.number, end_step),
        progress=tell,
        should_stop=shared.is_stopping,
        save=save,
        saved=note_saved,
        started=lambda group: shared.note_program(bench.number, group),
        worker=bench.number,
    )
