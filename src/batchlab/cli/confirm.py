"""batchlab confirm: train the best points of a finished sweep again, with fresh seeds."""

from __future__ import annotations

from typing import Annotated

import typer

from batchlab.cli.options import DEFAULT_LAB, DataOption, JsonOption, LabOption, SweepOption, WorkloadArgument


def confirm(
    workload: WorkloadArgument = None,
    lab: LabOption = DEFAULT_LAB,
    sweep: SweepOption = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs of each point; 6 is the least for 95 %.")] = 6,
    points: Annotated[int, typer.Option("--points", min=1, help="Best points of each batch size, at the most.")] = 3,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; one for each core.")] = None,
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

    name = Lab.open(lab).find(workload, sweep).name
    confirm_sweep(lab, name, seeds, points, data_dir=data, num_workers=workers, display=make_display())
    print_curve(lab, None, name, as_json=as_json)
