"""Worker processes that train packs: one thread each, fed by pipes, gone when their parent is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from types import MappingProxyType
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
from batchlab.run.executor import Event, Failed, Lost, Passing
from batchlab.run.gpus import gpu_variables
from batchlab.run.pack import PackTask
from batchlab.run.parcel import Content, Descriptor, Parcel
from batchlab.run.shelf import Shelf
from batchlab.run.signals import Signals
from batchlab.run.work import Bench, attempt

WORKER_VARIABLES = {
    # One thread for each process: trials in parallel use the cores better than threads in a trial.
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    # glibc keeps freed memory: every step takes the same blocks again, and fetching them from the system anew
    # costs 12 % of a step of the simple CNN at batch size 1024.
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
}


class LocalExecutor:
    """Runs tasks in processes on this machine: they share its disk, and write their checkpoints themselves."""

    def __init__(
        self, trainer: Trainer, batch_sizes: list[int], num_workers: int, gpus: Sequence[str] | None = None
    ) -> None:
        end_if_imported_by_worker()
        _check_script()
        start_tracker()
        self._signals = Signals(batch_sizes, num_workers)
        self._content = (trainer, self._signals)
        self._workers: list[_Worker] = []
        try:
            for number in range(num_workers):
                self._workers.append(_Worker(number, gpu_variables(gpus, number)))
                self._workers[-1].start(self._content)
        except BaseException:  # a signal, once it is let through
            self.close()
            raise

    @property
    def num_workers(self) -> int:
        """How many processes there are."""
        return len(self._workers)

    @property
    def num_idle(self) -> int:
        """How many workers wait for a task, those included that have to be started anew."""
        return sum(worker.key is None for worker in self._workers)

    def submit(self, key: Any, task: PackTask | Errand, shelf: Shelf | None = None) -> None:
        """Give a task to an idle worker; `key` comes back with its events."""
        worker = next(worker for worker in self._workers if worker.key is None)
        if worker.pipe.closed:
            worker = self._workers[worker.number] = _Worker(worker.number, worker.variables)
            worker.start(self._content)
        worker.key = key
        with suppress(OSError):  # it has died this moment: its end will be heard of
            worker.send((key, task, shelf))

    def events(self, timeout: float | None) -> Iterator[Event]:
        """Yield what the workers have said, waiting for up to `timeout` seconds; None waits for the first."""
        deadline = None if timeout is None else time.monotonic() + timeout
        heard: list[Event] | None = []
        while heard == []:  # some worker has said something that is no event
            heard = self._listen(None if deadline is None else max(0.0, deadline - time.monotonic()))
        yield from heard or ()

    def _listen(self, timeout: float | None) -> list[Event] | None:
        """Return the events of the workers that have something to say; None where none has."""
        by_pipe: dict[Any, _Worker] = {worker.pipe: worker for worker in self._workers if not worker.pipe.closed}
        ready = wait(list(by_pipe), timeout)
        events = (self._hear(by_pipe[pipe]) for pipe in ready)
        return [event for event in events if event is not None] if ready else None

    def _hear(self, worker: _Worker) -> Event | None:
        """Return the next event of a worker; None where it has only told that it serves, or died with nothing to do."""
        try:
            event: Event | None = worker.pipe.recv()
        except (EOFError, OSError):  # it is gone, perhaps in the middle of a word
            return self._bury(worker)
        if event is None:
            worker.has_served = True
        elif not isinstance(event, Passing):
            worker.key = None
        return event

    def _bury(self, worker: _Worker) -> Event | None:
        """Return what is lost with a worker that has ended, and end what it has left running."""
        key, worker.key = worker.key, None
        worker.join(timeout=5)
        error, why = worker.start_problem(), worker.ending()
        worker.close()
        _end_group(self._signals.take_program(worker.number))
        if error is not None:
            return Failed(key, error)
        return None if key is None else Lost(key, why)

    def stop(self) -> None:
        """Ask every running pack to save and end."""
        self._signals.stop()

    def close(self) -> None:
        """End the workers at once; packs that still run lose what came after their last checkpoint."""
        for worker in self._workers:
            worker.close()
        for worker in self._workers:
            worker.join()
            _end_group(self._signals.take_program(worker.number))


def _end_group(group: int) -> None:
    """Kill the program of the user's own that a worker has left running, with all that it has started."""
    if group:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _check_script() -> None:
    """Raise InputError where the program was read from somewhere that workers cannot read it from again."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is not None and getattr(main, "__spec__", None) is None and not os.path.exists(path):
        raise InputError(
            f"Worker processes import the script that starts the run, but {path} is no file: save it in one."
        )


class _Worker:
    """A process and this end of the pipe to it."""

    def __init__(self, number: int, variables: Mapping[str, str]) -> None:
        context = multiprocessing.get_context("spawn")
        self.number, self.variables, self.has_served = number, variables, False
        self.key: Any = None
        self.pipe, self._its_pipe = context.Pipe()
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._context, self._sealed = context, b""
        self.process: multiprocessing.process.BaseProcess | None = None

    def start(self, content: Content) -> None:
        """Start it. What it says before it serves, tracebacks of its start say, goes to a file of its own."""
        parcel = Parcel(content)
        with worker_environment(self.variables), undisturbed_by_signals(), _stderr_into(self._stderr) as stderr:
            process = self._context.Process(
                target=_serve,
                args=(self._its_pipe, stderr, parcel, self.number, all_held()),
                daemon=True,
                name="batchlab worker",
            )
            self.process = process
            try:
                process.start()
            except OSError as error:
                raise TrialError(
                    f"A worker process could not be started: {error.strerror}. Use fewer --workers."
                ) from error
        self._its_pipe.close()
        self._sealed = parcel.take_sealed()

    def send(self, message: Any) -> None:
        """Send a task; before its first one it gets what the parcel holds."""
        if self._sealed:
            self.pipe.send_bytes(self._sealed)
            self._sealed = b""
        self.pipe.send(message)

    @property
    def _exit_code(self) -> int | None:
        return None if self.process is None else self.process.exitcode

    def start_problem(self) -> BatchlabError | None:
        """Return why it could not start, which it has told in the file; None where it was killed, or has served."""
        code, said = self._exit_code, self._said()
        if self.has_served or code is None or code < 0:
            return None
        if NO_GUARD in said:
            return InputError(NO_GUARD)
        place = "it imports the script that starts the run, and that failed"
        return TrialError(f"A worker process could not start (exit code {code}): {place}:\n{said}".rstrip(":\n"))

    def ending(self) -> str:
        """Return how it has ended, in a few words."""
        return f"exit code {self._exit_code}{_reason(self._exit_code)}"

    def close(self) -> None:
        self.pipe.close()
        self._stderr.close()
        if self.process is not None and self.process.pid is not None:
            self.process.kill()

    def join(self, timeout: float | None = None) -> None:
        if self.process is not None and self.process.pid is not None:
            self.process.join(timeout)

    def _said(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace").strip()


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
    bench = Bench(number, lambda: parcel.content, pipe.send)
    pipe.send(None)  # it has started
    with suppress(EOFError):
        parcel.receive(pipe.recv_bytes())
        while True:
            key, task, shelf = pipe.recv()
            pipe.send(attempt(key, task, bench, shelf))


@contextmanager
def worker_environment(more: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Start processes whose numerical libraries are set up for training, see WORKER_VARIABLES, and with `more`."""
    variables = {**WORKER_VARIABLES, **more}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
