"""Who is measured: one process, and gangs of several that train one trial together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from batchlab.core.sweep import Sweep
from batchlab.engine.base import Trainer
from batchlab.engine.gang.exchange_timing import ExchangingTrainer
from batchlab.link.hub import check_held
from batchlab.link.hub_process import Joined
from batchlab.run.executors.choose import make_executor
from batchlab.run.executors.executor import Executor
from batchlab.run.executors.gpus import count_workers, find_gpus


@dataclass(frozen=True)
class Team:
    """An executor of one worker: a process alone, or a gang of some that a link may join."""

    size: int
    executor: Executor
    link: Joined | None = None

    def check(self) -> None:
        """Raise TrialError where the link is gone."""
        if self.link is not None:
            check_held(self.link)


@dataclass(frozen=True)
class Teams:
    """Who is measured."""

    by_size: Mapping[int, Team]
    unlinked: Team | None = None
    """The smallest gang once more, without the link that joins the others; None where there is no link."""

    @property
    def gangs(self) -> list[Team]:
        """Teams of several processes, the smallest first."""
        return [team for size, team in sorted(self.by_size.items()) if size > 1]


@contextmanager
def start_teams(sweep: Sweep, trainer: Trainer, sizes: Sequence[int], link: Joined | None) -> Iterator[Teams]:
    """Have a team of each size for a while; the gangs live at the ends of a link, where one is given."""
    gpus = find_gpus(sweep, None) if max(sizes) > 1 else None
    count_workers(gpus, max(sizes), 1)  # each process needs a GPU of its own, where GPUs are used
    with ExitStack() as stack:

        def start(size: int, link: Joined | None) -> Team:
            executor = start_team(sweep, trainer, size, gpus, link)
            return Team(size, stack.enter_context(closing(executor)), link)

        by_size = {size: start(size, link if size > 1 else None) for size in sizes}
        unlinked = None if link is None else start(min(size for size in sizes if size > 1), None)
        yield Teams(by_size, unlinked)


def start_team(sweep: Sweep, trainer: Trainer, size: int, gpus: Sequence[str] | None, link: Joined | None) -> Executor:
    """Return an executor of one worker of so many processes."""
    if size == 1:
        return make_executor(trainer, [], 1, gpus)
    engine = sweep.engine.model_copy(update={"workers_per_trial": size})
    return make_executor(ExchangingTrainer(trainer), [], 1, gpus, engine, link)
