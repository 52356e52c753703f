"""Worker processes that train packs: one thread each, fed by pipes, gone when their parent is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import IO, Any

from batchlab.engine.base import Trainer
from batchlab.errors import BatchlabError, InputError, TrialError
from batchlab.held import Held, all_held, take_up
from batchlab.processes import (
    NO_GUARD,
    die_with_parent,
    end_if_imported_by_worker,
    start_tracker,
    undisturbed_by_signals,
)
from batchlab.run.errand import Errand
from batchlab.run.executor import Event, Failed, Progress
from batchlab.run.pack import PackTask
from batchlab.run.parcel import Descriptor, Parcel
from batchlab.run.signals import Signals
from batchlab.run.work import attempt

WORKER_VARIABLES = {
    # One thread for each process: trials in parallel use the cores better than threads in a trial.
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    # glibc keeps freed memory: every step takes the same blocks again, and fetching them from the system anew
    # costs 12 % of a step of the simple CNN at batch size 1024.
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
}


class LocalExecutor:
    """Runs tasks in processes on this machine. Tasks of one study share the end of its race."""

    def __init__(self, trainer: Trainer, batch_sizes: list[int], num_workers: int) -> None:
        end_if_imported_by_worker()
        _check_script()
        start_tracker()
        context = multiprocessing.get_context("spawn")
        self._signals = Signals(batch_sizes, num_workers)
        self._workers: list[_Worker] = []
        try:
            with worker_environment(), undisturbed_by_signals():
                for number in range(num_workers):
                    self._start(context, number, Parcel((trainer, self._signals)))
        except BaseException:  # a signal, once it is let through
            self.close()
            raise

    def _start(self, context: Any, number: int, parcel: Parcel) -> None:
        """Start a worker. What it says before it serves, tracebacks of its start say, goes to a file of its own."""
        here, there = context.Pipe()
        file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the worker
        with _stderr_into(file) as stderr:
            process = context.Process(
                target=_serve, args=(there, stderr, parcel, number, all_held()), daemon=True, name="batchlab worker"
            )
            worker = _Worker(process, here, file)
            self._workers.append(worker)
            process.start()
        there.close()
        worker.parcel = parcel.take_sealed()

    @property
    def num_idle(self) -> int:
        """How many workers wait for a task."""
        return sum(worker.key is None for worker in self._workers)

    def submit(self, key: Any, task: PackTask | Errand) -> None:
        """Give a task to an idle worker; `key` comes back with its events."""
        worker = next(worker for worker in self._workers if worker.key is None)
        worker.key = key
        try:
            worker.send((key, task))
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
        self._signals.stop()

    def close(self) -> None:
        """End the workers at once; packs that still run lose what came after their last checkpoint."""
        for worker in self._workers:
            worker.close()
        for worker in self._workers:
            worker.join()


def _check_script() -> None:
    """Raise InputError where the program was read from somewhere that workers cannot read it from again."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is not None and getattr(main, "__spec__", None) is None and not os.path.exists(path):
        raise InputError(
            f"Worker processes import the script that starts the run, but {path} is no file: save it in one."
        )


@dataclass
class _Worker:
    process: multiprocessing.process.BaseProcess
    pipe: Connection
    stderr: IO[bytes]
    """What it said before it served."""

    key: Any = None
    parcel: bytes = b""
    """What it still has to be sent before its first task."""

    def send(self, message: Any) -> None:
        if self.parcel:
            self.pipe.send_bytes(self.parcel)
            self.parcel = b""
        self.pipe.send(message)

    @property
    def has_started(self) -> bool:
        return self.process.pid is not None

    def death(self) -> BatchlabError:
        """Say why it has ended: at its start, which it has told in the file, or later."""
        self.join(timeout=5)
        code, said = self.process.exitcode, self._said()
        if NO_GUARD in said:
            return InputError(NO_GUARD)
        if said and code is not None and code > 0:
            place = "it imports the script that starts the run, and that failed"
            return TrialError(f"A worker process could not start (exit code {code}): {place}:\n{said}")
        return TrialError(
            f"A worker process ended unexpectedly (exit code {code}){_reason(code)}. "
            "Run the same command again to go on, with fewer --workers if memory is short."
        )

    def close(self) -> None:
        self.pipe.close()
        self.stderr.close()
        if self.has_started:
            self.process.kill()

    def join(self, timeout: float | None = None) -> None:
        if self.has_started:
            self.process.join(timeout)

    def _said(self) -> str:
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace").strip()


def _reason(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return ": it was killed, as the system does when memory runs out"
    return f": a crash, {signal.Signals(-code).name}" if code is not None and code < 0 else ""


def _return_to(stderr: Descriptor | None) -> None:
    """In a worker that has started: take up the stderr of its parent, and pass on what was said meanwhile."""
    if stderr is not None:
        said = os.pread(2, os.fstat(2).st_size, 0)
        os.ftruncate(2, 0)
        stderr.become(2)
        with suppress(OSError):  # it may be full
            os.write(2, said)


@contextmanager
def _stderr_into(file: IO[bytes]) -> Iterator[Descriptor | None]:
    """Give processes that start meanwhile a file as stderr; yields the stderr to return to, if there is one."""
    try:
        before = os.dup(2)
    except OSError:  # closed: there is nothing to return to
        yield None
        return
    os.dup2(file.fileno(), 2)
    try:
        yield Descriptor(before)
    finally:
        os.dup2(before, 2)
        os.close(before)


def _serve(pipe: Connection, stderr: Descriptor | None, parcel: Parcel, number: int, held: tuple[Held, ...]) -> None:
    """The life of a worker: tasks in, events out, until the pipe closes. It writes to what its parent holds.

    A signal to the whole group is for the parent alone, which tells its workers to write their checkpoints.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    die_with_parent()
    _return_to(stderr)
    take_up(held)
    is_empty = True
    while True:
        try:
            if is_empty:
                parcel.receive(pipe.recv_bytes())
                is_empty = False
            key, task = pipe.recv()
        except EOFError:
            return
        pipe.send(attempt(key, task, lambda: parcel.content, number, pipe.send))


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
