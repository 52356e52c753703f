"""Who is measured: one process, and gangs of several that train one trial together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from batchlab.core.sweep import Sweep
from batchlab.engine.base import Trainer
from batchlab.engine.exchange_timing import ExchangingTrainer
from batchlab.link.hub_process import Joined
from batchlab.run.executor import Executor
from batchlab.run.executors import make_executor
from batchlab.run.gpus import count_workers, find_gpus


@dataclass(frozen=True)
class Teams:
    """Executors of one worker each: a process alone, or a gang."""

    by_size: Mapping[int, Executor]
    """By the number of processes."""

    unlinked: Executor | None = None
    """The smallest gang once more, without the link that joins the others; None where there is no link."""

    @property
    def gangs(self) -> list[int]:
        """The numbers of processes of the gangs, ascending."""
        return sorted(size for size in self.by_size if size > 1)


@contextmanager
def start_teams(sweep: Sweep, trainer: Trainer, sizes: Sequence[int], link: Joined | None) -> Iterator[Teams]:
    """Have a team of each size for a while; the gangs live at the ends of a link, where one is given."""
    gpus = find_gpus(sweep, None) if max(sizes) > 1 else None
    count_workers(gpus, max(sizes), 1)  # each process needs a GPU of its own, where GPUs are used
    with ExitStack() as stack:

        def start(size: int, link: Joined | None) -> Executor:
            return stack.enter_context(closing(start_team(sweep, trainer, size, gpus, link)))

        by_size = {size: start(size, link) for size in sizes}
        unlinked = None if link is None else start(min(size for size in sizes if size > 1), None)
        yield Teams(by_size, unlinked)


def start_team(sweep: Sweep, trainer: Trainer, size: int, gpus: Sequence[str] | None, link: Joined | None) -> Executor:
    """Return an executor of one worker of so many processes."""
    if size == 1:
        return make_executor(trainer, [], 1, gpus)
    engine = sweep.engine.model_copy(update={"workers_per_trial": size})
    return make_executor(ExchangingTrainer(trainer), [], 1, gpus, engine, link)
