"""batchlab confirm: train the best points of a finished sweep again, with fresh seeds."""

from __future__ import annotations

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
    warn,
)

if TYPE_CHECKING:
    from batchlab.core.sweep import Sweep


def confirm(
    workload: WorkloadArgument = None,
    lab: LabOption = DEFAULT_LAB,
    sweep: SweepOption = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds", min=1, help="Runs of each point; as before, or 6. 95 % takes 6 of up to 3 points, 7 of up to 6."
        ),
    ] = None,
    points: Annotated[
        int | None,
        typer.Option("--points", min=1, help="Best points of each batch size, at the most; as before, or 3."),
    ] = None,
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
    from batchlab.run.confirm import confirm_sweep, sweep_to_confirm
    from batchlab.run.displays import make_display
    from batchlab.store.lab import Lab

    found = Lab.open(lab).find(workload, sweep)
    if warning := no_interval(sweep_to_confirm(lab, found.name, seeds, points)):
        warn(warning)
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


def no_interval(sweep: Sweep) -> str | None:
    """Return what to say where the seeds that confirm a sweep are too few for a 95 % interval; None elsewhere.

    One of several points is the best of them by luck as well, so the more are confirmed, the more seeds it takes.
    """
    from batchlab.analysis.answers.confirmed import fewest_seeds

    confirm = sweep.search.confirm
    if confirm is None:
        return None
    points = min(confirm.points, sweep.search.trials)
    least = fewest_seeds(points)
    if confirm.seeds >= least:
        return None
    return (
        f"seeds = {confirm.seeds} is too few for a 95 % interval where points = {points} are confirmed; "
        f"--seeds {least} is enough"
    )
