"""This process and others beside it, with a bounded queue."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from batchlab.errors import BatchlabError
from batchlab.held import Held, all_held, take_up
from batchlab.processes import die_with_parent

Job = tuple[Callable[..., Any], tuple[Any, ...]]


class Pool:
    """Does work here and in other processes; of one process there is only this one."""

    def __init__(self, processes: int) -> None:
        self._limit = 2 * processes
        self._running: set[Future[Any]] = set()
        context = multiprocessing.get_context("spawn")
        self._executor = ProcessPoolExecutor(processes - 1, context, _begin, (all_held(),)) if processes > 1 else None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Start a piece of work, waiting while too many are under way; an error of an earlier one is raised."""
        if self._executor is None:
            function(*arguments)
            return
        self._wait(self._limit - 1)
        self._running.add(self._executor.submit(function, *arguments))

    def drain(self) -> None:
        """Wait for everything that was submitted."""
        self._wait(0)

    def results(self, jobs: Iterable[Job]) -> Iterator[Any]:
        """Do the jobs, here and in the other processes, and yield their results as they come."""
        running: set[Future[Any]] = set()
        for function, arguments in jobs:
            if self._executor is not None and len(running) < self._limit:
                running.add(self._executor.submit(function, *arguments))
                continue
            yield function(*arguments)
            done, running = wait(running, timeout=0)
            yield from (_result(future) for future in done)
        for future in as_completed(running):
            yield _result(future)

    def _wait(self, most: int) -> None:
        while len(self._running) > most:
            done, self._running = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                _result(future)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *details: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except BrokenProcessPool:
        raise BatchlabError(
            "A process of the import was killed, perhaps for want of memory. Run the same command again to go on, "
            "with fewer --workers."
        ) from None


def _begin(held: tuple[Held, ...]) -> None:
    """Begin a process: it writes for the one that holds the lab, and ends with it."""
    die_with_parent()
    take_up(held)
