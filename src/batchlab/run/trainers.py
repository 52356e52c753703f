"""Which trainer a sweep is run with."""

from __future__ import annotations

from pathlib import Path

from batchlab.core.sweep import Sweep
from batchlab.data import registry as data
from batchlab.engine import quadratic
from batchlab.engine.base import Trainer, check_study
from batchlab.spec.check import check_sweep


def make_trainer(sweep: Sweep, data_dir: Path | None) -> Trainer:
    """Return the trainer of a sweep, once that is checked; a network's dataset is read, or fetched, here."""
    check_sweep(sweep)
    if sweep.workload.is_closed_form:
        return quadratic.QuadraticTrainer()
    from batchlab.engine.torch_trainer import TorchTrainer

    dataset = data.load(sweep.workload.dataset, data_dir)
    engine = sweep.engine
    trainer = TorchTrainer(dataset, engine.device, engine.precision, engine.microbatch_size or "auto")
    for study in reversed(sweep.studies()):
        check_study(trainer, study)  # the number of examples may be known only now
    if sweep.engine.device != "auto":
        _ = trainer.device_name  # a device that cannot be used is refused now, before anything is written
    return trainer
