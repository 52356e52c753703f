"""An executor on a Ray cluster: the workers are actors, on whichever of its machines there is room.

The side that holds the lab is the one process that all workers talk to: it writes their checkpoints, and passes on
the ends of races. So a worker, or its machine, may go at any time, and what it had told stays told. A dataset is put
into Ray's object store, of which every machine has one, and all workers of a machine read it there.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from batchlab.engine.base import Trainer
from batchlab.errors import InputError, TrialError
from batchlab.run.executors.executor import Event, Lost, Passing, Saved, Task, TaskKey
from batchlab.run.executors.noticeboard import FAR
from batchlab.run.executors.work import Bench, attempt
from batchlab.run.executors.worker import WORKER_VARIABLES
from batchlab.run.shelf import Shelf
from batchlab.store.checkpoint import Checkpoint

LOOK_SECONDS = 0.5
"""Between two looks for workers that have found room."""

NO_ROOM_SECONDS = 60.0
"""How long a cluster may have no room for a single worker."""


@dataclass(frozen=True)
class _Kept:
    """A checkpoint on its way to the shelf of a task."""

    key: TaskKey
    checkpoint: Checkpoint


@dataclass(frozen=True)
class _Told:
    """An end of a study's race, for all."""

    batch_size: int
    end_step: int


class _Heard:
    """What a worker knows of the others: ends of races, and whether all shall stop."""

    def __init__(self, tell: Callable[[Any], None]) -> None:
        self._tell, self._ends, self._is_stopping = tell, dict[int, int](), False

    def hear(self, ends: dict[int, int], is_stopping: bool) -> None:
        """Take note of what was passed on."""
        self._ends = {size: min(end, self._ends.get(size, FAR)) for size, end in ends.items()} | {
            size: end for size, end in self._ends.items() if size not in ends
        }
        self._is_stopping = self._is_stopping or is_stopping

    def end_step(self, batch_size: int) -> int:
        """Return the nearest end of a study's race that is known here."""
        return self._ends.get(batch_size, FAR)

    def lower(self, batch_size: int, worker: int, end_step: int) -> None:
        """Tell an end of a study's race."""
        if end_step < self.end_step(batch_size):
            self.hear({batch_size: end_step}, is_stopping=False)
            self._tell(_Told(batch_size, end_step))

    def is_stopping(self) -> bool:
        """Return whether the workers are to stop."""
        return self._is_stopping

    def note_program(self, worker: int, group: int) -> None:
        """Nothing: loops of one's own are not trained here."""


@dataclass(frozen=True)
class _Sender:
    """Keeps checkpoints by sending them to the side that holds the lab."""

    key: TaskKey
    send: Callable[[Any], None]
    loop: Path | None = None

    def save(self, checkpoint: Checkpoint) -> None:
        """Send one; what comes after it, its end included, arrives later."""
        self.send(_Kept(self.key, checkpoint))


class _Actor:
    """A worker. One thread has a task done and yields what happens; another hears of the rest of the race."""

    def __init__(self, number: int, trainer: Trainer) -> None:
        self._said: SimpleQueue[Any] = SimpleQueue()
        self._heard = _Heard(self._said.put)
        self._bench = Bench(number, lambda: (trainer, self._heard), self._say)

    def _say(self, event: Event) -> None:
        if not isinstance(event, Saved):  # which is told by who keeps it
            self._said.put(event)

    def number(self) -> int:
        """Return the number of the process: it is there."""
        return os.getpid()

    def hear(self, ends: dict[int, int], is_stopping: bool) -> None:
        """Take note of the ends of races that others have found."""
        self._heard.hear(ends, is_stopping)

    def work(self, key: TaskKey, task: Task, ends: dict[int, int], is_stopping: bool) -> Iterator[Any]:
        """Do a task, and yield all that happens on the way and how it ended."""
        self._heard.hear(ends, is_stopping)

        def do() -> None:
            self._said.put(attempt(key, task, self._bench, _Sender(key, self._said.put)))

        threading.Thread(target=do, daemon=True).start()
        while True:
            said = self._said.get()
            yield said
            if not isinstance(said, Passing | _Kept | _Told):
                return


@dataclass
class _Worker:
    """An actor as it is seen from here."""

    number: int
    actor: Any
    is_there: Any
    """Its answer, once it has found room."""

    key: TaskKey | None = None
    shelf: Shelf | None = None
    events: Any = None
    has_room: bool = False


class RayExecutor:
    """Runs tasks in actors of a Ray cluster: the one at `address`, else the one that is found, else one of its own.

    With `on_gpus` each worker has a GPU. There are as many workers as the cluster has CPUs, or GPUs, for.
    """

    def __init__(
        self, trainer: Trainer, num_workers: int | None = None, address: str | None = None, on_gpus: bool = False
    ) -> None:
        self._ray = import_ray()
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            _connect(self._ray, address)
        self._ends, self._is_stopping, self._is_closed = dict[int, int](), False, False
        self._trainer = self._ray.put(trainer)
        self._resources = {"num_cpus": 1, "num_gpus": int(on_gpus)}
        count = num_workers or max(1, int(self._ray.cluster_resources().get("GPU" if on_gpus else "CPU", 1)))
        self._workers = [self._start(number) for number in range(count)]
        self._wait_for_room()

    def _start(self, number: int) -> _Worker:
        options = {**self._resources, "max_concurrency": 2, "runtime_env": {"env_vars": WORKER_VARIABLES}}
        actor = self._ray.remote(_Actor).options(**options).remote(number, self._trainer)
        return _Worker(number, actor, actor.number.remote())

    def _wait_for_room(self) -> None:
        """Wait until there is a worker; TrialError where none finds room."""
        deadline = time.monotonic() + NO_ROOM_SECONDS
        while not any(worker.has_room for worker in self._workers):
            if time.monotonic() > deadline:
                raise TrialError(
                    f"The Ray cluster had no room for a worker in {NO_ROOM_SECONDS:g} s: each needs one CPU, and with "
                    "GPUs a GPU too. Free some, or start more nodes."
                )
            self._look(LOOK_SECONDS)

    def _look(self, seconds: float) -> None:
        """Take note of workers that have found room; one that died on the way is started anew."""
        waiting = {worker.is_there: worker for worker in self._workers if not worker.has_room}
        if not waiting:
            return
        there, _ = self._ray.wait(list(waiting), num_returns=1, timeout=seconds)
        for ref in there:
            worker = waiting[ref]
            worker.has_room = self._lives(worker)
            if not worker.has_room:
                self._workers[worker.number] = self._start(worker.number)

    @property
    def num_workers(self) -> int:
        """How many actors there are, or will be once there is room for them."""
        return len(self._workers)

    @property
    def num_idle(self) -> int:
        """How many workers have found room and wait for a task."""
        if not any(worker.has_room for worker in self._workers):
            self._wait_for_room()
        return sum(worker.has_room and worker.key is None for worker in self._workers)

    def submit(self, key: TaskKey, task: Task, shelf: Shelf | None = None) -> None:
        """Give a task to an idle worker; `key` comes back with its events."""
        worker = self._idle_worker()
        worker.key, worker.shelf = key, shelf
        method = worker.actor.work.options(num_returns="streaming")
        worker.events = method.remote(key, task, dict(self._ends), self._is_stopping)

    def _idle_worker(self) -> _Worker:
        """Return a worker that waits and lives: one that died meanwhile had nothing to lose.

        Where all others are busy it is returned all the same, and its task will be lost at once.
        """
        while self.num_idle:
            idle = [worker for worker in self._workers if worker.has_room and worker.key is None]
            living = next((worker for worker in idle if self._lives(worker)), None)
            if living is not None or len(idle) < sum(worker.has_room for worker in self._workers):
                return living or idle[0]
            for worker in idle:
                self._workers[worker.number] = self._start(worker.number)
        raise TrialError("No worker of the Ray cluster is idle.")

    def _lives(self, worker: _Worker) -> bool:
        """Return whether a worker answers; TrialError where it could not be made, which no other could."""
        errors = self._ray.exceptions
        try:
            self._ray.get(worker.actor.number.remote())
        except errors.RayActorError as error:
            if getattr(error, "actor_init_failed", False):
                raise TrialError(_cannot_start(error)) from None
            return False
        except errors.RayError as error:
            raise TrialError(_cannot_start(error)) from None
        return True

    def events(self, timeout: float | None) -> Iterator[Event]:
        """Yield what the workers have said, waiting for up to `timeout` seconds; None waits for the first."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = LOOK_SECONDS if deadline is None else min(LOOK_SECONDS, max(0.0, deadline - time.monotonic()))
            events = self._listen(left)
            yield from events
            if events or (deadline is not None and time.monotonic() >= deadline):
                return

    def _listen(self, seconds: float) -> list[Event]:
        self._look(0)
        busy = {worker.events: worker for worker in self._workers if worker.events is not None}
        if not busy:
            time.sleep(seconds)
            return []
        ready, _ = self._ray.wait(list(busy), num_returns=1, timeout=seconds, fetch_local=False)
        events = [self._hear(busy[each]) for each in ready]
        return [event for event in events if event is not None]

    def _hear(self, worker: _Worker) -> Event | None:
        """Return the next event of a worker; what is for us alone is done here."""
        try:
            said = self._ray.get(next(worker.events))
        except (StopIteration, self._ray.exceptions.RayError) as error:
            return self._bury(worker, error)
        if isinstance(said, _Told):
            self._tell(said)
            return None
        if isinstance(said, _Kept):
            assert worker.shelf is not None
            worker.shelf.save(said.checkpoint)
            return Saved(said.key)
        if not isinstance(said, Passing):
            worker.key = worker.shelf = worker.events = None
        event: Event = said
        return event

    def _tell(self, told: _Told) -> None:
        """Pass an end of a race on to all who train."""
        if told.end_step < self._ends.get(told.batch_size, FAR):
            self._ends[told.batch_size] = told.end_step
            self._pass_on()

    def _pass_on(self) -> None:
        for worker in self._workers:
            if worker.key is not None:
                worker.actor.hear.remote(dict(self._ends), self._is_stopping)

    def _bury(self, worker: _Worker, error: Exception) -> Event | None:
        """Return what is lost with a worker, and look for room for another."""
        key = worker.key
        self._ray.kill(worker.actor)
        self._workers[worker.number] = self._start(worker.number)
        return None if key is None else Lost(key, _reason(error))

    def stop(self) -> None:
        """Ask every running pack to save and end."""
        self._is_stopping = True
        self._pass_on()

    def close(self) -> None:
        """End the workers at once; packs that still run lose what came after their last checkpoint."""
        if self._is_closed:
            return
        self._is_closed = True
        for worker in self._workers:
            self._ray.kill(worker.actor)
        if self._is_ours:
            self._ray.shutdown()


def import_ray() -> Any:
    """Return Ray; InputError with the command that installs it where there is none."""
    try:
        import ray
    except ImportError:
        raise InputError('Executor "ray" needs Ray: install batchlab with its extra [ray].') from None
    return ray


def _connect(ray: Any, address: str | None) -> None:
    """Connect to a cluster; InputError where there is none at an address that was given."""
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=None)
    except ConnectionError as error:
        raise InputError(f"Address {address}: there is no Ray cluster ({' '.join(str(error).split())}).") from None


def _cannot_start(error: Exception) -> str:
    said = next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
    return (
        f"A worker of the Ray cluster could not start: {said.strip()[:300]}. Every node needs batchlab and your own "
        "code, in the same versions."
    )


def _reason(error: Exception) -> str:
    """Return why a worker was lost, in a few words of Ray's."""
    return " ".join(str(error).split())[:300] or type(error).__name__
