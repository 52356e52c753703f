"""Which executor a run trains with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from batchlab.core.limits import MOST_WORKERS
from batchlab.core.sweep import Engine, Sweep
from batchlab.engine.base import Trainer, check_shared
from batchlab.errors import InputError, shown, unknown_name
from batchlab.link.hub_process import Joined
from batchlab.loops.resources import trials_at_once
from batchlab.processes import usable_cores
from batchlab.run.executors.cluster_address import check_address
from batchlab.run.executors.executor import Executor
from batchlab.run.executors.gang import GangExecutor
from batchlab.run.executors.gpus import count_workers, find_gpus
from batchlab.run.executors.here import HereExecutor
from batchlab.run.executors.local import LocalExecutor

KINDS = ("local", "ray")
DEFAULT_ENGINE = Engine()
StartExecutor = Callable[[list[int]], Executor]
"""Starts the workers for studies of these batch sizes."""


def choose_executor(
    kind: str,
    sweep: Sweep,
    trainer: Trainer,
    num_workers: int | None = None,
    num_gpus: int | None = None,
    address: str | None = None,
) -> StartExecutor:
    """Return what starts the executor that is asked for; InputError, before anything is made, for what cannot be."""
    check_counts(num_workers, num_gpus)
    check_kind(kind)
    if kind == "ray":
        return _on_cluster(sweep, trainer, num_workers, num_gpus, address)
    if address is not None:
        raise InputError(f'Address {shown(address)} is that of a Ray cluster: choose the executor "ray".')
    gpus = None if _stays_here(trainer) else find_gpus(sweep, num_gpus)
    count = count_workers(gpus, num_workers, default_workers(sweep))
    if sweep.engine.workers_per_trial > 1:
        check_gangs(sweep, trainer)
        is_given = num_workers is not None or bool(gpus)
        count = _count_gangs(sweep.engine.workers_per_trial, count, is_given=is_given)
    return lambda batch_sizes: make_executor(trainer, batch_sizes, count, gpus, sweep.engine)


def check_kind(kind: str) -> None:
    """Raise InputError for an executor that nobody knows."""
    if kind not in KINDS:
        raise InputError(unknown_name("executor", kind, KINDS))


def _count_gangs(size: int, num_processes: int, *, is_given: bool) -> int:
    """Return how many gangs so many processes are; InputError where they are too few for one."""
    if num_processes < size and is_given:
        raise InputError(
            f"engine.workers_per_trial = {size} needs {size} processes for a trial, each with a GPU where GPUs are "
            f"used, and there are {num_processes}: take {size} workers or more, or a smaller number for a trial."
        )
    return max(1, num_processes // size)


def check_gangs(sweep: Sweep, trainer: Trainer) -> None:
    """Raise InputError where as many workers as a sweep asks for cannot train one trial of it together."""
    check_gang(trainer, sweep.engine.workers_per_trial)
    for study in sweep.studies():
        check_shared(trainer, study, sweep.engine.workers_per_trial)


def check_gang(trainer: Trainer, size: int) -> None:
    """Raise InputError where no batch can be shared by several processes: not by this trainer, not on this system."""
    if _stays_here(trainer):
        raise InputError(
            f"engine.workers_per_trial = {size}: a network that was written at a prompt trains in this process; save "
            "it in a file."
        )
    if sys.platform != "linux":
        raise InputError(f"engine.workers_per_trial = {size}: on this system start it with torchrun.")


def _on_cluster(
    sweep: Sweep, trainer: Trainer, num_workers: int | None, num_gpus: int | None, address: str | None
) -> StartExecutor:
    if sweep.workload.is_own_loop or _stays_here(trainer):
        raise InputError(
            'Executor "ray": a loop of your own, and a network that was written at a prompt, train on this machine '
            "alone. Leave it out."
        )
    if sweep.engine.workers_per_trial > 1:
        raise InputError(
            f'Executor "ray": engine.workers_per_trial = {sweep.engine.workers_per_trial} is for one machine, or for '
            "torchrun. Leave one of the two out."
        )
    from batchlab.run.executors.ray import RayExecutor, import_ray

    import_ray()
    if address is not None:
        check_address(address)
    return lambda batch_sizes: RayExecutor(trainer, num_gpus or num_workers, address, on_gpus=bool(num_gpus))


def make_executor(
    trainer: Trainer,
    batch_sizes: list[int],
    num_workers: int,
    gpus: Sequence[str] | None = None,
    engine: Engine = DEFAULT_ENGINE,
    link: Joined | None = None,
) -> Executor:
    """Return worker processes, or gangs of them, each with one of the GPUs; for a trainer that cannot leave this
    process, a thread. The processes of a gang live at the ends of a link, where one is given.
    """
    if _stays_here(trainer):
        return HereExecutor(trainer, batch_sizes)
    size, timeout = engine.workers_per_trial, engine.worker_timeout_seconds
    if size > 1:
        return GangExecutor(trainer, batch_sizes, num_workers, gpus, size=size, timeout=timeout, link=link)
    return LocalExecutor(trainer, batch_sizes, num_workers, gpus)


def _stays_here(trainer: Trainer) -> bool:
    return bool(getattr(trainer, "stays_here", False))


def default_workers(sweep: Sweep) -> int:
    """Return one worker for each core, or for as many as a trial of a loop of one's own needs."""
    at_once = trials_at_once(sweep.engine.plain()) if sweep.workload.is_own_loop else usable_cores()
    return min(at_once, MOST_WORKERS)


def check_counts(num_workers: int | None, num_gpus: int | None) -> None:
    """Raise InputError for numbers of workers or GPUs that nobody can mean."""
    for name, count, least in (("num_workers", num_workers, 1), ("num_gpus", num_gpus, 0)):
        if count is not None and not least <= count <= MOST_WORKERS:
            raise InputError(f"{name} = {shown(count)}: give a number from {least} to {MOST_WORKERS:,}.")
