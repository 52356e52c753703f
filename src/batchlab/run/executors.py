"""Which executor a run trains with."""

from __future__ import annotations

from batchlab.engine.base import Trainer
from batchlab.run.here import HereExecutor
from batchlab.run.local import LocalExecutor

Executor = LocalExecutor | HereExecutor


def make_executor(trainer: Trainer, batch_sizes: list[int], num_workers: int) -> LocalExecutor | HereExecutor:
    """Return worker processes; for a trainer that cannot leave this one, a thread."""
    if getattr(trainer, "stays_here", False):
        return HereExecutor(trainer, batch_sizes)
    return LocalExecutor(trainer, batch_sizes, num_workers)
