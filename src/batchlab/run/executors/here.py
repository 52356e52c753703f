"""An executor that trains in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue

from batchlab.engine.base import Trainer
from batchlab.run.executors.executor import Event, Passing, Task, TaskKey
from batchlab.run.executors.noticeboard import Noticeboard
from batchlab.run.executors.work import Bench, attempt
from batchlab.run.shelf import Shelf


class HereExecutor:
    """Runs one task at a time in a thread of this process: for what is written at a prompt or in a notebook."""

    def __init__(self, trainer: Trainer, batch_sizes: list[int]) -> None:
        self._noticeboard = Noticeboard(batch_sizes, num_workers=1)
        self._bench = Bench(0, lambda: (trainer, self._noticeboard), lambda event: self._events.put(event))
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._key: TaskKey | None = None
        self._thread: threading.Thread | None = None

    @property
    def num_workers(self) -> int:
        """One."""
        return 1

    @property
    def num_idle(self) -> int:
        """One while nothing is trained."""
        return int(self._key is None)

    def submit(self, key: TaskKey, task: Task, shelf: Shelf | None = None) -> None:
        """Begin a task; `key` comes back with its events."""
        self._key = key

        def work() -> None:
            self._events.put(attempt(key, task, self._bench, shelf))

        self._thread = threading.Thread(target=work, name="batchlab worker", daemon=True)
        self._thread.start()

    def events(self, timeout: float | None) -> Iterator[Event]:
        """Yield what the task has said, waiting for up to `timeout` seconds; None waits for the first."""
        with suppress(Empty):
            event = self._events.get(timeout=timeout)
            if not isinstance(event, Passing):
                self._key = None
            yield event

    def stop(self) -> None:
        """Ask the task to write its checkpoint and end."""
        self._noticeboard.stop()

    def close(self) -> None:
        """Let the task end at its next checkpoint: a thread cannot be killed."""
        self._noticeboard.stop()
        if self._thread is not None:
            self._thread.join()
