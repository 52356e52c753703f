"""Worker processes of this machine that train packs."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from batchlab.engine.base import Trainer
from batchlab.errors import InputError
from batchlab.processes import end_if_imported_by_worker, start_tracker
from batchlab.run.executors.executor import Event, Failed, Lost, Passing, Task, TaskKey
from batchlab.run.executors.gpus import gpu_variables
from batchlab.run.executors.noticeboard import Noticeboard
from batchlab.run.executors.parcel import Content, Parcel
from batchlab.run.executors.work import Bench, attempt
from batchlab.run.executors.worker import Ending, WorkerProcess
from batchlab.run.shelf import Shelf


class Worker(Protocol):
    """One worker of the contract, as this process sees it: a process, or several that do one task together."""

    key: TaskKey | None
    """Of its task; None while it is idle."""

    @property
    def pipes(self) -> Sequence[Connection]:
        """By which its messages come; none once it has ended."""
        ...

    def start(self, content: Content) -> None:
        """Start it; TrialError where the system refuses."""
        ...

    def send(self, message: Any) -> None:
        """Send a task; OSError where it has died."""
        ...

    def hear(self, pipe: Connection) -> Event | None:
        """Return what it has just said by a pipe, None where that is no event; EOFError or OSError where it is gone."""
        ...

    def end(self) -> Ending:
        """Return how it has ended; it is gone."""
        ...

    def close(self) -> None:
        """End it at once."""
        ...

    def join(self) -> None:
        """Wait until it has ended."""
        ...


class LocalExecutor:
    """Runs tasks in processes on this machine: they share its disk, and write their checkpoints themselves."""

    def __init__(
        self, trainer: Trainer, batch_sizes: list[int], num_workers: int, gpus: Sequence[str] | None = None
    ) -> None:
        end_if_imported_by_worker()
        _check_script()
        start_tracker()
        self._noticeboard = Noticeboard(batch_sizes, num_workers)
        self._content = (trainer, self._noticeboard)
        self._gpus, self._workers = gpus, list[Worker]()
        try:
            for number in range(num_workers):
                self._workers.append(self._worker(number))
                self._workers[-1].start(self._content)
        except BaseException:  # a signal, once it is let through
            self.close()
            raise

    def _worker(self, number: int) -> Worker:
        """Return a worker that is still to be started."""
        return _Single(number, gpu_variables(self._gpus, number))

    @property
    def num_workers(self) -> int:
        """How many there are."""
        return len(self._workers)

    @property
    def num_idle(self) -> int:
        """How many workers wait for a task, those included that have to be started anew."""
        return sum(worker.key is None for worker in self._workers)

    def submit(self, key: TaskKey, task: Task, shelf: Shelf | None = None) -> None:
        """Give a task to an idle worker; `key` comes back with its events."""
        number, worker = next((number, each) for number, each in enumerate(self._workers) if each.key is None)
        if not worker.pipes:
            worker = self._workers[number] = self._worker(number)
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
        numbers: dict[Any, int] = {pipe: number for number, each in enumerate(self._workers) for pipe in each.pipes}
        ready = wait(list(numbers), timeout)
        events = [self._hear(numbers[pipe], pipe) for pipe in ready if isinstance(pipe, Connection)]
        return [event for event in events if event is not None] if ready else None

    def _hear(self, number: int, pipe: Connection) -> Event | None:
        """Return the next event of a worker; None where it has only begun to serve, or died without a task."""
        worker = self._workers[number]
        if pipe.closed:  # it was buried because of what was heard by another pipe
            return None
        try:
            event = worker.hear(pipe)
        except (EOFError, OSError):  # it is gone, perhaps in the middle of a word
            return self._bury(number)
        if event is not None and not isinstance(event, Passing):
            worker.key = None
        return event

    def _bury(self, number: int) -> Event | None:
        """Return what is lost with a worker that has ended."""
        return self._lose(number, self._workers[number].end())

    def _lose(self, number: int, ending: Ending) -> Event | None:
        """End a worker, with what it has left running, and return what is lost with it."""
        worker = self._workers[number]
        key, worker.key = worker.key, None
        worker.close()
        _end_group(self._noticeboard.take_program(number))
        if ending.error is not None:
            return Failed(key, ending.error)
        return None if key is None else Lost(key, ending.why, ending.ended_itself)

    def stop(self) -> None:
        """Ask every running pack to save and end."""
        self._noticeboard.stop()

    def close(self) -> None:
        """End the workers at once; packs that still run lose what came after their last checkpoint."""
        for worker in self._workers:
            worker.close()
        for number, worker in enumerate(self._workers):
            worker.join()
            _end_group(self._noticeboard.take_program(number))


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


@dataclass(frozen=True)
class _Serving:
    """The life of a worker that works alone: tasks in, events out."""

    number: int

    def __call__(self, pipe: Connection, parcel: Parcel) -> None:
        bench = Bench(self.number, lambda: parcel.content, pipe.send)
        parcel.receive(pipe.recv_bytes())
        while True:
            key, task, shelf = pipe.recv()
            pipe.send(attempt(key, task, bench, shelf))


class _Single(WorkerProcess):
    """A worker that is one process."""

    def __init__(self, number: int, variables: Mapping[str, str]) -> None:
        super().__init__(_Serving(number), variables)
        self.key: TaskKey | None = None

    @property
    def pipes(self) -> Sequence[Connection]:
        """The one that there is."""
        return [] if self.pipe.closed else [self.pipe]

    def hear(self, pipe: Connection) -> Event | None:
        """Return an event; None for the message that it has begun to serve."""
        event: Event | None = pipe.recv()
        self.has_served = self.has_served or event is None
        return event

    def end(self) -> Ending:
        """Return how it has ended."""
        self.join(timeout=5)
        return self.ending()
