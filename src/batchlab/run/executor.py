"""Worker processes that train packs: one thread each, fed by pipes, gone when their parent is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from batchlab.core.study import Study
from batchlab.engine.base import Trainer
from batchlab.engine.pack_size import calibrate
from batchlab.errors import BatchlabError, Interrupted, TrialError
from batchlab.processes import die_with_parent
from batchlab.run.pack import Hooks, PackResult, PackTask, train_pack

PROGRESS_SECONDS = 0.2
WORKER_VARIABLES = {
    # One thread for each process: trials in parallel use the cores better than threads in a trial.
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    # glibc keeps freed memory: every step takes the same blocks again, and fetching them from the system anew
    # costs 12 % of a step of the simple CNN at batch size 1024.
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
}


@dataclass(frozen=True)
class CalibrateTask:
    """Find the fastest pack size for a study."""

    study: Study
    metaparameters: dict[str, float]


@dataclass(frozen=True)
class Progress:
    """A pack's state after an evaluation."""

    key: Any
    step: int
    num_live: int
    best_steps: int | None


@dataclass(frozen=True)
class Finished:
    """A task's result: a PackResult, or (pack size, seconds per trial-step)."""

    key: Any
    result: Any


@dataclass(frozen=True)
class Stopped:
    """A task that a stop signal ended; its checkpoint is written."""

    key: Any


@dataclass(frozen=True)
class Paused:
    """A pack that makes way for others; its checkpoint is written."""

    key: Any


@dataclass(frozen=True)
class Failed:
    """A task that raised: the error to raise in the parent."""

    key: Any
    error: BatchlabError


Event = Progress | Finished | Paused | Stopped | Failed


class LocalExecutor:
    """Runs tasks in processes on this machine. Tasks of one study share the end of its race."""

    def __init__(self, trainer: Trainer, batch_sizes: list[int], num_workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._ends = {batch_size: context.Value("q", 2**62) for batch_size in batch_sizes}
        self._workers: list[_Worker] = []
        with worker_environment(), _undisturbed_by_signals():
            for _ in range(num_workers):
                here, there = context.Pipe()
                process = context.Process(
                    target=_serve, args=(there, trainer, self._ends, self._stop), daemon=True, name="batchlab worker"
                )
                process.start()
                there.close()
                self._workers.append(_Worker(process, here))

    @property
    def num_idle(self) -> int:
        """How many workers wait for a task."""
        return sum(worker.key is None for worker in self._workers)

    def submit(self, key: Any, task: PackTask | CalibrateTask) -> None:
        """Give a task to an idle worker; `key` comes back with its events."""
        worker = next(worker for worker in self._workers if worker.key is None)
        worker.key = key
        try:
            worker.pipe.send((key, task))
        except (BrokenPipeError, ConnectionResetError):
            raise worker.death() from None

    def events(self, timeout: float | None) -> Iterator[Event]:
        """Yield what the workers have said, waiting for up to `timeout` seconds; None waits for the first."""
        by_pipe = {worker.pipe: worker for worker in self._workers}
        for pipe in wait(list(by_pipe), timeout):
            worker = by_pipe[pipe]  # type: ignore[index]
            try:
                event: Event = worker.pipe.recv()
            except (EOFError, ConnectionResetError):
                event = Failed(worker.key, worker.death())
            if not isinstance(event, Progress):
                worker.key = None
            yield event

    def stop(self) -> None:
        """Ask every running pack to write its checkpoint and end."""
        self._stop.set()

    def close(self) -> None:
        """End the workers at once; packs that still run lose what came after their last checkpoint."""
        for worker in self._workers:
            worker.pipe.close()
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()


@dataclass
class _Worker:
    process: multiprocessing.process.BaseProcess
    pipe: Connection
    key: Any = None

    def death(self) -> TrialError:
        self.process.join(timeout=5)
        return TrialError(
            f"A worker process ended unexpectedly (exit code {self.process.exitcode}); it may have run out of memory. "
            "Run the same command again to go on, with fewer --workers if memory is short."
        )


def _serve(pipe: Connection, trainer: Trainer, ends: dict[int, Any], stop: Any) -> None:
    """The life of a worker: tasks in, events out, until the pipe closes.

    A signal to the whole group is for the parent alone, which tells its workers to write their checkpoints.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    die_with_parent()
    while True:
        try:
            key, task = pipe.recv()
        except EOFError:
            return
        pipe.send(_attempt(key, task, trainer, ends, stop, pipe))


def _attempt(
    key: Any, task: PackTask | CalibrateTask, trainer: Trainer, ends: dict[int, Any], stop: Any, pipe: Connection
) -> Event:
    try:
        if isinstance(task, CalibrateTask):
            return Finished(key, calibrate(trainer, task.study, task.metaparameters))
        result = _train(key, task, trainer, ends[task.study.batch_size], stop, pipe)
        return Paused(key) if result is None else Finished(key, result)
    except Interrupted:
        return Stopped(key)
    except BatchlabError as error:
        return Failed(key, error)
    except Exception:
        return Failed(
            key, TrialError(f"A trial failed at batch size {task.study.batch_size}:\n{traceback.format_exc()}")
        )


def _train(key: Any, task: PackTask, trainer: Trainer, end: Any, stop: Any, pipe: Connection) -> PackResult | None:
    if not task.stops_at_goal:
        _lower(end, task.end_step)
    told = 0.0

    def tell(step: int, num_live: int, best_steps: int | None) -> None:
        nonlocal told
        if time.perf_counter() - told > PROGRESS_SECONDS:
            told = time.perf_counter()
            pipe.send(Progress(key, step, num_live, best_steps))

    hooks = Hooks(
        end_step=lambda: int(end.value),
        confirm_end=lambda end_step: _lower(end, end_step),
        progress=tell,
        should_stop=stop.is_set,
    )
    return train_pack(trainer, task, hooks)


def _lower(value: Any, end_step: int) -> None:
    with value.get_lock():
        value.value = min(value.value, end_step)


@contextmanager
def worker_environment() -> Iterator[None]:
    """Start processes whose numerical libraries are set up for training: see WORKER_VARIABLES."""
    before = {name: os.environ.get(name) for name in WORKER_VARIABLES}
    os.environ.update(WORKER_VARIABLES)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _undisturbed_by_signals() -> Iterator[None]:
    """Keep signals from a process that has not yet said that it ignores them."""
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
