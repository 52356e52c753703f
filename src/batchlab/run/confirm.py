"""Confirming a sweep that has been run: its best points, trained again with fresh seeds."""

from __future__ import annotations

from pathlib import Path

from batchlab.core.confirmation import Confirm
from batchlab.engine.base import Trainer
from batchlab.errors import LabError
from batchlab.report.shown import ShownSummary
from batchlab.run.displays import Display
from batchlab.run.runner import run_sweep
from batchlab.store.lab import Lab


def confirm_sweep(
    lab: Path | str,
    name: str,
    seeds: int = 6,
    points: int = 3,
    *,
    data_dir: Path | None = None,
    num_workers: int | None = None,
    num_gpus: int | None = None,
    executor: str = "local",
    address: str | None = None,
    trainer: Trainer | None = None,
    display: Display | None = None,
) -> ShownSummary | None:
    """Train up to `points` of the best points of every batch size again, with `seeds` fresh seeds each."""
    store = Lab.open(Path(lab))
    stored = store.sweep(name)
    if stored.spec is None:
        raise LabError(
            f"Sweep {name} in lab {lab} was imported: its points cannot be trained here. Run one of your own."
        )
    if stored.spec.workload.is_own_loop and trainer is None:
        raise LabError(
            f"Sweep {name} in lab {lab} was trained by a loop of your own, which a stored sweep never starts. Run its "
            f'file again with --set "sweep.confirm={{seeds={seeds}, points={points}}}".'
        )
    unfinished = [size for size in stored.batch_sizes if not store.is_finished(name, size)]
    if unfinished:
        sizes = ", ".join(str(size) for size in unfinished)
        raise LabError(
            f"Sweep {name} in lab {lab} is not finished at batch size {sizes}. Run it to its end first: batchlab run."
        )
    plan = stored.spec.search.model_copy(
        update={"confirm": Confirm.parse({"seeds": seeds, "points": points}, "confirm")}
    )
    sweep = stored.spec.model_copy(update={"search": plan})
    return run_sweep(
        sweep,
        lab,
        data_dir=data_dir,
        num_workers=num_workers,
        num_gpus=num_gpus,
        executor=executor,
        address=address,
        trainer=trainer,
        display=display,
    )
