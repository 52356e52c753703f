"""Gangs: workers of several processes each, which train one trial together.

The first process of a gang leads: it has the tasks, keeps the checkpoints and speaks. The others follow its orders, see
`engine.gang.leading`, and exchange gradients with it by `torch.distributed`. They live and die together: when one has
ended or stalled, all are killed, the task is lost, and a fresh gang takes their place. They find each other by a file
that is in no folder: there is no port to be in use, and nothing to be left behind.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import Any

from batchlab.engine.base import Trainer
from batchlab.engine.gang.leading import LeadingTrainer, Order, follow
from batchlab.engine.shared import nameless_file
from batchlab.errors import BatchlabError, LostOthersError
from batchlab.link.hub_process import Joined
from batchlab.link.namespace import enter
from batchlab.run.executors.executor import Event, Failed, TaskKey
from batchlab.run.executors.gpus import gpu_variables
from batchlab.run.executors.local import LocalExecutor, Worker
from batchlab.run.executors.parcel import Content, Descriptor, Parcel
from batchlab.run.executors.pulse import Pulse, Watch
from batchlab.run.executors.work import Bench, as_told, attempt
from batchlab.run.executors.worker import Ending, Life, WorkerProcess

INTERFACE_VARIABLE = "GLOO_SOCKET_IFNAME"
"""Tells gloo which network its processes meet in."""

LOOK_SECONDS = 0.5
"""Between two looks for a process that has stalled."""

GRACE_SECONDS = 10.0
"""How long the others of a gang may take to report what has happened, once one is in trouble."""


class GangExecutor(LocalExecutor):
    """Runs tasks in gangs of `size` processes of this machine. A process may stall for `timeout` seconds."""

    def __init__(
        self,
        trainer: Trainer,
        batch_sizes: list[int],
        num_workers: int,
        gpus: Sequence[str] | None = None,
        *,
        size: int,
        timeout: float,
        link: Joined | None = None,
    ) -> None:
        self._size, self._timeout, self._link = size, timeout, link
        super().__init__(trainer, batch_sizes, num_workers, gpus)

    def _worker(self, number: int) -> Worker:
        variables = [gpu_variables(self._gpus, number * self._size + rank) for rank in range(self._size)]
        return _Gang(number, variables, self._timeout, self._link)

    def _listen(self, timeout: float | None) -> list[Event] | None:
        is_last = timeout is not None and timeout <= LOOK_SECONDS
        heard = super()._listen(timeout if is_last else LOOK_SECONDS)
        lost = [self._lose(number, troubled) for number, troubled in self._troubled()]
        if heard is None and not lost and is_last:
            return None
        return [*(heard or ()), *(event for event in lost if event is not None)]

    def _troubled(self) -> Iterator[tuple[int, Ending]]:
        """Yield the gangs that will not go on, though none of their processes has ended, and why."""
        for number, gang in enumerate(self._workers):
            assert isinstance(gang, _Gang)
            trouble = gang.trouble() if gang.pipes else None
            if trouble is not None:
                yield number, trouble


class _Gang:
    """One worker of several processes, as this process sees it."""

    def __init__(
        self, number: int, variables: Sequence[Mapping[str, str]], timeout: float, link: Joined | None = None
    ) -> None:
        self._number, self._variables, self._timeout, self._link = number, variables, timeout, link
        self.key: TaskKey | None = None
        self._members: list[WorkerProcess] = []
        self._pulse = Pulse(len(variables))
        self._watch: Watch | None = None
        self._problems: dict[int, BatchlabError] = {}
        self._troubled = 0.0

    def start(self, content: Content) -> None:
        """Start all processes, and leave them what they need to find each other."""
        context, size = multiprocessing.get_context("spawn"), len(self._variables)
        number = nameless_file()
        heard, told = zip(*(context.Pipe(duplex=False) for _ in range(size - 1)), strict=True)
        try:
            members = [_Member(rank, size, Descriptor(number), self._pulse, self._link) for rank in range(size)]
            lives: list[Life] = [_Leading(members[0], self._number, told), *map(_Following, members[1:], heard)]
            for life, variables in zip(lives, self._variables, strict=True):
                self._members.append(WorkerProcess(life, variables))
                self._members[-1].start(content)
        finally:
            for each in (*heard, *told):
                each.close()
            os.close(number)

    @property
    def pipes(self) -> Sequence[Connection]:
        """Those of all processes."""
        return [member.pipe for member in self._members if not member.pipe.closed]

    def send(self, message: Any) -> None:
        """Send the first process a task."""
        self._watch = Watch(self._pulse, self._timeout, time.monotonic())
        self._problems.clear()
        leader, *others = self._members
        for each in others:
            each.send_content()
        leader.send(message)

    def hear(self, pipe: Connection) -> Event | None:
        """Return an event of the first process; problems are remembered until the gang ends."""
        (rank,) = (rank for rank, member in enumerate(self._members) if member.pipe is pipe)
        said = pipe.recv()
        if said is None:
            self._members[rank].has_served = True
        if isinstance(said, _Last):
            self.close()
            return said.event
        if not isinstance(said, _Problem):
            event: Event | None = said
            return event
        self._note(rank, said.error)
        if isinstance(said.error, LostOthersError):
            raise EOFError
        return None

    def _note(self, rank: int, error: BatchlabError) -> None:
        self._troubled = self._troubled if self._problems else time.monotonic()
        self._problems[rank] = error

    def trouble(self) -> Ending | None:
        """Return why it will not go on, though all its processes live: one has failed, or stalled; None if it will."""
        if self.key is None or self._watch is None:
            return None
        now = time.monotonic()
        if self._cause is not None and now - self._troubled > GRACE_SECONDS:
            return Ending("", self._cause)
        stalled = self._watch.stalled(now)
        if not stalled:
            return None
        names = " and ".join(map(self._name, stalled))
        return Ending(f"no answer from {names} for {self._timeout:g} s, engine.worker_timeout_seconds")

    @property
    def _cause(self) -> BatchlabError | None:
        """What one of the processes has failed by, if it is more than that it has lost the others."""
        return next((each for each in self._problems.values() if not isinstance(each, LostOthersError)), None)

    def _name(self, rank: int) -> str:
        return f"rank {rank} of {len(self._members)} (process {self._members[rank].pid})"

    def end(self) -> Ending:
        """Return what one of the processes has failed by, or which has died, and how."""
        if self.key is None:
            return Ending("", self._start_problem())
        dead = self._find_dead()
        if dead is None:
            return Ending(str(next(iter(self._problems.values()), "its processes ended")), self._cause)
        member = self._members[dead]
        member.join(timeout=GRACE_SECONDS)
        ending = member.ending()
        error = self._cause or self._start_problem()
        return replace(ending, why=f"{self._name(dead)}: {ending.why}", error=error)

    def _start_problem(self) -> BatchlabError | None:
        return next((problem for each in self._members if (problem := each.start_problem()) is not None), None)

    def _find_dead(self) -> int | None:
        """Return the first process that has ended without a word, waiting a while for the words of the others."""
        deadline = time.monotonic() + GRACE_SECONDS
        ranks: dict[Any, int] = {member.pipe: rank for rank, member in enumerate(self._members)}
        while ranks and self._cause is None:
            ready = wait(list(ranks), max(0.0, deadline - time.monotonic()))
            if not ready:
                break
            for pipe in ready:
                try:
                    said = self._members[ranks[pipe]].pipe.recv()
                except (EOFError, OSError):
                    rank = ranks.pop(pipe)
                    if rank not in self._problems:
                        return rank
                    continue
                if isinstance(said, _Problem):
                    self._note(ranks[pipe], said.error)
        return None

    def close(self) -> None:
        """End all processes at once."""
        for member in self._members:
            member.close()

    def join(self) -> None:
        """Wait until all have ended."""
        for member in self._members:
            member.join()


# In the processes of a gang


@dataclass(frozen=True)
class _Problem:
    """What has gone wrong in one of the processes, as far as that one knows."""

    error: BatchlabError


@dataclass(frozen=True)
class _Last:
    """The end of a task after which the processes of a gang are no longer in step."""

    event: Event


@dataclass(frozen=True)
class _Member:
    """One process of a gang: its rank, and what all of them share."""

    rank: int
    size: int
    place: Descriptor
    """The file by which they find each other."""

    pulse: Pulse
    link: Joined | None = None
    """At one of whose ends it lives."""

    def join(self, trainer: Trainer) -> Trainer:
        """Return the trainer, which exchanges with the others from now on; one that cannot does the same as they do."""
        join = getattr(trainer, "join", None)
        if join is not None:
            from batchlab.engine.gang.group import meet

            if self.link is not None:
                enter(self.link.namespaces[self.rank])
                os.environ[INTERFACE_VARIABLE] = self.link.interface
            device = getattr(trainer, "device_name", "cpu")
            join(meet(self.place.path, self.rank, self.size, device, self._begun))
        return trainer

    def _begun(self) -> None:
        self.pulse.begin_exchange(self.rank)


@dataclass(frozen=True)
class _Leading:
    """The life of the first process: tasks in, events out, and orders to the others."""

    member: _Member
    number: int
    """That of the gang."""

    orders: Sequence[Connection]

    def __call__(self, pipe: Connection, parcel: Parcel) -> None:
        self.member.pulse.keep_beating(rank=0)
        parcel.receive(pipe.recv_bytes())
        leader: LeadingTrainer | None = None

        def content() -> Any:
            nonlocal leader
            trainer, noticeboard = parcel.content
            if leader is None:
                leader = LeadingTrainer(self.member.join(trainer), self._tell, self.member.pulse.set_together)
            return leader, noticeboard

        bench = Bench(self.number, content, pipe.send)
        is_in_step = True
        while is_in_step:
            key, task, shelf = pipe.recv()
            event = attempt(key, task, bench, shelf)
            is_in_step = leader is not None and leader.is_in_step
            pipe.send(event if is_in_step else _last(event))

    def _tell(self, order: Order) -> None:
        try:
            for each in self.orders:
                each.send(order)
        except OSError:
            raise LostOthersError("Worker 0 of a trial has lost the connection to another.") from None


def _last(event: Event) -> _Last | _Problem:
    """Return what is sent of a task after which the gang cannot go on; to have lost the others is no failure of it."""
    if isinstance(event, Failed) and isinstance(event.error, LostOthersError):
        return _Problem(event.error)
    return _Last(event)


@dataclass(frozen=True)
class _Following:
    """The life of any other process: orders in, problems out. It writes nothing."""

    member: _Member
    orders: Connection

    def __call__(self, pipe: Connection, parcel: Parcel) -> None:
        self.member.pulse.keep_beating(self.member.rank)
        warnings.simplefilter("ignore")  # the first process says what there is to say
        parcel.receive(pipe.recv_bytes())
        try:
            trainer = self.member.join(parcel.content[0])
            follow(trainer, self._heard(), lambda error: pipe.send(_Problem(as_told(error))))
        except Exception as error:
            with suppress(OSError):  # nobody may be left to hear of it
                pipe.send(_Problem(as_told(error)))

    def _heard(self) -> Iterator[Order]:
        while True:
            try:
                yield self.orders.recv()
            except (EOFError, OSError):
                raise LostOthersError("The first worker of a trial has ended.") from None
