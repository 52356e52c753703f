"""Which trainer a sweep is run with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from batchlab.core.sweep import Sweep
from batchlab.core.workload import OwnLoop
from batchlab.data import registry as data
from batchlab.engine import quadratic
from batchlab.engine.base import Trainer, check_study
from batchlab.engine.device import find_device
from batchlab.engine.observer import Observer
from batchlab.errors import InputError
from batchlab.loops.command import CommandTrainer
from batchlab.processes import start_tracker
from batchlab.spec.check import check_sweep


def make_trainer(sweep: Sweep, data_dir: Path | None, observers: Sequence[Observer] = ()) -> Trainer:
    """Return the trainer of a sweep, once that is checked; a network's dataset is read, or fetched, here."""
    check_sweep(sweep)
    if observers and (sweep.workload.is_own_loop or sweep.workload.is_closed_form):
        raise InputError(f"observers: {sweep.workload.name} is no network that batchlab trains: there is none to see.")
    if isinstance(sweep.workload, OwnLoop):
        return CommandTrainer(sweep.workload)
    start_tracker()  # before there is anything in shared memory
    if sweep.workload.is_closed_form:
        return quadratic.QuadraticTrainer()
    from batchlab.engine.checks.buildable import check_buildable
    from batchlab.engine.torch_trainer import TorchTrainer

    largest, engine = sweep.studies()[-1], sweep.engine
    check_buildable(largest, data.facts(sweep.workload.dataset), find_device(engine.device))  # before much is read
    dataset = data.load(sweep.workload.dataset, data_dir)
    trainer = TorchTrainer(
        dataset, engine.device, engine.precision, engine.microbatch_size or "auto", observers=observers
    )
    for study in reversed(sweep.studies()):
        check_study(trainer, study)  # the number of examples may be known only now
    trainer.check_buildable(largest)  # and so may their shape
    return trainer
