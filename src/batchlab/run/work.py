"""What a worker does with a task, wherever it works."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any, cast

from batchlab.engine.base import Trainer
from batchlab.errors import BatchlabError, Interrupted, TrialError
from batchlab.loops.base import LoopTrainer
from batchlab.run.errand import Errand
from batchlab.run.executor import Event, Failed, Finished, Paused, Progress, Stopped
from batchlab.run.loop_trial import follow_trial
from batchlab.run.pack import Hooks, PackResult, PackTask, train_pack
from batchlab.run.signals import Signals
from batchlab.run.standing import Standing

PROGRESS_SECONDS = 0.2


def attempt(
    key: Any,
    task: PackTask | Errand,
    content: Callable[[], tuple[Trainer, Signals]],
    number: int,
    tell: Callable[[Event], None],
) -> Event:
    """Do a task and return how it ended; `tell` is told how far it is."""
    try:
        trainer, signals = content()
        if not isinstance(task, PackTask):
            return Finished(key, task.perform(trainer))
        result = _train(key, task, trainer, signals, number, tell)
        return Paused(key) if result is None else Finished(key, result)
    except Interrupted:
        return Stopped(key)
    except BatchlabError as error:
        return Failed(key, error)
    except Exception:
        return Failed(
            key, TrialError(f"A trial failed at batch size {task.study.batch_size}:\n{traceback.format_exc()}")
        )


def _train(
    key: Any, task: PackTask, trainer: Trainer, signals: Signals, number: int, tell_all: Callable[[Event], None]
) -> PackResult | None:
    size, told = task.study.batch_size, 0.0
    if not task.stops_at_goal:
        signals.lower(size, number, task.end_step)

    def tell(standing: Standing) -> None:
        nonlocal told
        if time.perf_counter() - told > PROGRESS_SECONDS:
            told = time.perf_counter()
            tell_all(Progress(key, standing))

    hooks = Hooks(
        end_step=lambda: signals.end_step(size),
        confirm_end=lambda end_step: signals.lower(size, number, end_step),
        progress=tell,
        should_stop=signals.is_stopping,
        worker=number,
    )
    if task.study.workload.is_own_loop:
        return follow_trial(cast("LoopTrainer", trainer), task, hooks)
    return train_pack(trainer, task, hooks)
