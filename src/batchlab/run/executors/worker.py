"""A worker process: one thread, fed by a pipe, gone when its parent is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import MappingProxyType
from typing import IO, Any

from batchlab.errors import BatchlabError, InputError, TrialError
from batchlab.locked_folders import Held, all_held, take_up
from batchlab.processes import (
    NO_GUARD,
    die_with_parent,
    take_back_safe_path,
    undisturbed_by_folder,
    undisturbed_by_signals,
)
from batchlab.run.executors.parcel import Content, Descriptor, Parcel

WORKER_VARIABLES = {
    # One thread for each process: trials in parallel use the cores better than threads in a trial.
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    # glibc keeps freed memory: every step takes the same blocks again, and fetching them from the system anew
    # costs 12 % of a step of the simple CNN at batch size 1024.
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
}


@dataclass(frozen=True)
class Ending:
    """How a worker has ended."""

    why: str
    """In a few words, such as `exit code -9: it was killed`."""

    error: BatchlabError | None = None
    """What it could not do its task by, where no other worker could either."""

    ended_itself: bool = False


Life = Callable[[Connection, Parcel], None]
"""What a worker does once it has started, with its end of the pipe; the parcel is still to be received."""


class WorkerProcess:
    """A process and this end of the pipe to it."""

    def __init__(self, life: Life, variables: Mapping[str, str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._life, self._variables, self.has_served = life, variables, False
        self.pipe, self._its_pipe = context.Pipe()
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._context, self._sealed = context, b""
        self.process: multiprocessing.process.BaseProcess | None = None

    def start(self, content: Content) -> None:
        """Start it. What it says before it serves, tracebacks of its start say, goes to a file of its own."""
        parcel = Parcel(content)
        with (
            worker_environment(self._variables),
            undisturbed_by_signals(),
            undisturbed_by_folder(),
            _stderr_into(self._stderr) as stderr,
        ):
            process = self._context.Process(
                target=_live,
                args=(self._its_pipe, stderr, parcel, self._life, all_held()),
                daemon=True,
                name="batchlab worker",
            )
            self.process = process
            try:
                process.start()
            except OSError as error:
                raise TrialError(
                    f"A worker process could not be started: {error.strerror}. Use fewer workers."
                ) from error
        self._its_pipe.close()
        self._sealed = parcel.take_sealed()

    def send(self, message: Any) -> None:
        """Send a task; before its first one it gets what the parcel holds."""
        self.send_content()
        self.pipe.send(message)

    def send_content(self) -> None:
        """Send what the parcel holds, unless it was sent before."""
        if self._sealed:
            self.pipe.send_bytes(self._sealed)
            self._sealed = b""

    @property
    def exit_code(self) -> int | None:
        """How it has ended; None while it has not."""
        return None if self.process is None else self.process.exitcode

    @property
    def pid(self) -> int | None:
        """The number of the process; None before it has started."""
        return None if self.process is None else self.process.pid

    def start_problem(self) -> BatchlabError | None:
        """Return why it could not start, by what it wrote to its stderr; None where it was killed, or has served."""
        code, said = self.exit_code, self._said()
        if self.has_served or code is None or code < 0:
            return None
        if NO_GUARD in said:
            return InputError(NO_GUARD)
        place = "it imports the script that starts the run, and that failed"
        return TrialError(f"A worker process could not start (exit code {code}): {place}:\n{said}".rstrip(":\n"))

    def ending(self) -> Ending:
        """Return how it has ended."""
        code = self.exit_code
        ended_itself = code is not None and code >= 0
        return Ending(f"exit code {code}{_reason(code)}", self.start_problem(), ended_itself)

    def close(self) -> None:
        """End it at once."""
        self.pipe.close()
        self._stderr.close()
        if self.process is not None and self.pid is not None:
            self.process.kill()

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended."""
        if self.process is not None and self.pid is not None:
            self.process.join(timeout)

    def _said(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace").strip()


def _reason(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return ": it was killed, as the system does when memory runs out"
    if code is not None and code < 0:
        return f": a crash, {signal.Signals(-code).name}"
    return ": it ended itself, as `os._exit` does, which training code must not do"


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


def _live(pipe: Connection, stderr: Descriptor | None, parcel: Parcel, life: Life, held: tuple[Held, ...]) -> None:
    """Begin the life of a worker, which ends with the pipe. It writes to what its parent holds.

    A signal to the whole group is for the parent alone, which tells its workers to write their checkpoints.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    die_with_parent()
    take_back_safe_path()
    _return_to(stderr)
    take_up(held)
    pipe.send(None)  # it has started
    with suppress(EOFError):
        life(pipe, parcel)


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
