"""batchlab confirm: train the best points of a finished sweep again, with fresh seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batchlab.cli.options import (
    DEFAULT_LAB,
    AddressOption,
    DataOption,
    ExecutorOption,
    GpusOption,
    JsonOption,
    LabOption,
    SweepOption,
    WorkersOption,
    WorkloadArgument,
)

if TYPE_CHECKING:
    from batchlab.store.stored_sweep import StoredSweep


def confirm(
    workload: WorkloadArgument = None,
    lab: LabOption = DEFAULT_LAB,
    sweep: SweepOption = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs of each point; 6 is the least for 95 %.")] = 6,
    points: Annotated[int, typer.Option("--points", min=1, help="Best points of each batch size, at the most.")] = 3,
    workers: WorkersOption = None,
    gpus: GpusOption = None,
    executor: ExecutorOption = "local",
    address: AddressOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train the best points of a finished sweep again. With fresh seeds; the median is the answer to quote.

    Run it again to go on after a stop. At the end the curve is printed, as `batchlab curve` does.
    """
    from batchlab.cli.curve import print_curve
    from batchlab.run.confirm import confirm_sweep
    from batchlab.run.displays import make_display
    from batchlab.store.lab import Lab

    found = Lab.open(lab).find(workload, sweep)
    _check_known(lab, found)
    confirm_sweep(
        lab,
        found.name,
        seeds,
        points,
        data_dir=data,
        num_workers=workers,
        num_gpus=gpus,
        executor=executor,
        address=address,
        display=make_display(),
    )
    print_curve(lab, None, found.name, as_json=as_json)


def _check_known(lab: Path, found: StoredSweep) -> None:
    """Raise LabError for a sweep that only a trainer from Python can have trained."""
    from batchlab.errors import LabError, SpecError
    from batchlab.spec.check import check_sweep

    try:
        if found.spec is not None:
            check_sweep(found.spec)
    except SpecError as error:
        call = f'batchlab.confirm_sweep("{lab}", "{found.name}", trainer=...)'
        raise LabError(
            f"Sweep {found.name} in lab {lab} was trained by code of your own: run its file of Python again with"
            f' --set "sweep.confirm={{seeds=6, points=3}}", or confirm it from Python, {call}.'
        ) from error
