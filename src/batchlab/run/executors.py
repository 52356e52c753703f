"""Which executor a run trains with."""

from __future__ import annotations

from collections.abc import Sequence

from batchlab.engine.base import Trainer
from batchlab.run.executor import Executor
from batchlab.run.here import HereExecutor
from batchlab.run.local import LocalExecutor


def make_executor(
    trainer: Trainer, batch_sizes: list[int], num_workers: int, gpus: Sequence[str] | None = None
) -> Executor:
    """Return worker processes, each with one of the GPUs; for a trainer that cannot leave this one, a thread."""
    if getattr(trainer, "stays_here", False):
        return HereExecutor(trainer, batch_sizes)
    return LocalExecutor(trainer, batch_sizes, num_workers, gpus)
