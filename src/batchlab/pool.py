"""This process and others beside it, with a bounded queue.

Each of the others has a pipe, and a thread here that waits for its answers. Python's own pool of processes has locks
instead, which have names in the system that a kill of all processes would leave behind.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from batchlab.errors import BatchlabError
from batchlab.locked_folders import Held, all_held, take_up
from batchlab.processes import (
    die_with_parent,
    start_tracker,
    take_back_safe_path,
    undisturbed_by_folder,
    undisturbed_by_signals,
)

Job = tuple[Callable[..., Any], tuple[Any, ...]]


class Pool:
    """Does work here and in other processes, started as they are needed; of one process there is only this one."""

    def __init__(self, processes: int) -> None:
        self._most, self._limit = processes - 1, 2 * processes
        self._running: set[Future[Any]] = set()
        self._workers: list[_Worker] = []
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._threads = ThreadPoolExecutor(self._most) if self._most else None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Start a piece of work, waiting while too many are under way; an error of an earlier one is raised."""
        if self._threads is None:
            function(*arguments)
            return
        self._wait(self._limit - 1)
        self._running.add(self._send(self._threads, (function, arguments)))

    def drain(self) -> None:
        """Wait for everything that was submitted."""
        self._wait(0)

    def results(self, jobs: Iterable[Job]) -> Iterator[Any]:
        """Do the jobs, here and in the other processes, and yield their results as they come."""
        running: set[Future[Any]] = set()
        for function, arguments in jobs:
            if self._threads is not None and len(running) < self._limit:
                running.add(self._send(self._threads, (function, arguments)))
                continue
            yield function(*arguments)
            done, running = wait(running, timeout=0)
            yield from (future.result() for future in done)
        for future in as_completed(running):
            yield future.result()

    def _wait(self, most: int) -> None:
        while len(self._running) > most:
            done, self._running = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()

    def _send(self, threads: ThreadPoolExecutor, job: Job) -> Future[Any]:
        if len(self._workers) < self._most:
            worker = _Worker()
            self._workers.append(worker)
            worker.start()
            self._idle.put(worker)
        return threads.submit(self._do, job)

    def _do(self, job: Job) -> Any:
        """In a thread: have the next idle process do a job, and wait for it."""
        worker = self._idle.get()
        try:
            return worker.do(job)
        finally:
            self._idle.put(worker)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *details: object) -> None:
        """End the processes, whatever they do: their threads see it and end, too."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            for worker in self._workers:
                worker.end()
            self._threads.shutdown()


class _Worker:
    """Another process, and this end of the pipe to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, self._its_pipe = context.Pipe()
        self._process = context.Process(target=_serve, args=(self._its_pipe, all_held()), daemon=True)

    def start(self) -> None:
        start_tracker()
        with undisturbed_by_signals(), undisturbed_by_folder():
            self._process.start()
        self._its_pipe.close()  # or its end would not be seen here

    def do(self, job: Job) -> Any:
        """Return what a job returns, or raise what it raises."""
        try:
            self._pipe.send(job)
            is_done, result = self._pipe.recv()
        except (EOFError, OSError):
            raise BatchlabError(
                "A process of this command was killed, perhaps for want of memory. Run it again to go on, with fewer "
                "workers."
            ) from None
        if not is_done:
            raise result
        return result

    def end(self) -> None:
        if self._process.pid is not None:
            self._process.kill()
            self._process.join()


def _serve(pipe: Connection, held: tuple[Held, ...]) -> None:
    """The life of a process: jobs in, results out. It writes for the one that holds the lab, and ends with it.

    A signal to the whole group is for that one alone.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    die_with_parent()
    take_back_safe_path()
    take_up(held)
    with suppress(EOFError, BrokenPipeError):
        while True:
            function, arguments = pipe.recv()
            pipe.send(_attempt(function, arguments))


def _attempt(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    """Return whether a job was done, and its result or its error, which knows where it was raised."""
    try:
        return True, function(*arguments)
    except Exception as error:
        error.add_note(traceback.format_exc())
        return False, error
