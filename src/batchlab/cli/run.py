"""batchlab run: train the studies of a spec."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batchlab.cli.options import DEFAULT_LAB, DataOption, JsonOption, LabOption, print_json, print_table, warn

if TYPE_CHECKING:
    from batchlab.core.sweep import Sweep
    from batchlab.run.estimate import StudyEstimate


def run(
    spec: Annotated[str, typer.Argument(help="A spec file, or a name that `batchlab workloads` lists.")],
    lab: LabOption = DEFAULT_LAB,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; one for each core.")] = None,
    data: DataOption = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a value of the spec: --set sweep.trials=8")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option("--only", help="Train these points only, as 64..95, and leave the rest to another machine."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print studies, points and cost; train nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Train the studies of a spec. Run it again to go on after a stop.

    Every batch size is tuned by itself: the same number of trials that do not diverge, each at its own point of
    the search space. At the end the curve is printed, as `batchlab curve` does.
    """
    from batchlab.spec.load import load_sweep

    sweep = load_sweep(spec, settings or [])
    if dry_run:
        print_plan(sweep, data, workers, as_json)
        return
    from batchlab.cli.curve import print_curve
    from batchlab.run.displays import make_display
    from batchlab.run.runner import run_sweep

    wanted = None if only is None else parse_only(only, sweep)
    run_sweep(sweep, lab, data_dir=data, num_workers=workers, display=make_display(), only=wanted)
    if wanted is not None:
        warn(f"points {only} are trained; `batchlab run` without --only, or after `batchlab merge`, closes the race")
        return
    print_curve(lab, sweep.workload.name, sweep.name, as_json=as_json)
    if not as_json:
        _print_saving(sweep, lab)


def parse_only(text: str, sweep: Sweep) -> range:
    """Return the points that `64..95`, both ends included, or `64` means; InputError for what is no such thing."""
    from batchlab.errors import InputError

    first, dots, last = text.partition("..")
    points = min(study.attempts for study in sweep.studies())
    if not first.isdecimal() or not (last.isdecimal() if dots else True):
        raise InputError(f"--only {text}: write the points as FIRST..LAST, such as 64..95.")
    wanted = range(int(first), int(last or first) + 1)
    if not wanted or wanted[-1] >= points:
        raise InputError(f"--only {text}: the points of this sweep are 0..{points - 1}, FIRST not after LAST.")
    return wanted


def print_plan(sweep: Sweep, data: Path | None, workers: int | None, as_json: bool = False) -> None:
    """Print each study with its cost, an upper bound: the race ends most trials long before."""
    from batchlab.run.estimate import estimate_sweep

    estimate = estimate_sweep(sweep, data)
    num_workers = workers or os.cpu_count() or 1
    if as_json:
        studies = [{**asdict(study), "max_seconds": study.max_seconds} for study in estimate]
        print_json({"sweep": sweep.name, "workload": sweep.workload.name, "workers": num_workers, "studies": studies})
    else:
        _print_estimate(sweep, estimate, num_workers)


def _print_estimate(sweep: Sweep, estimate: list[StudyEstimate], num_workers: int) -> None:
    from batchlab.core.duration import spell_seconds

    rows = [
        [
            f"{study.batch_size:,}",
            f"{study.trials}",
            f"{study.attempts}",
            f"{study.max_steps:,}",
            f"{1e6 * study.seconds_per_trial_step:,.0f}",
            spell_seconds(study.max_seconds),
            ", ".join(f"{name} {value:.3g}" for name, value in study.first_point.items()),
        ]
        for study in estimate
    ]
    header = ["batch size", "trials", "points", "max steps", "us/trial-step", "at most (one core)", "first point"]
    print(
        f"Sweep {sweep.name}: {sweep.workload.name}, goal {sweep.search.hardest_goal}, {sweep.search.protocol} protocol"
    )
    print_table(header, rows)
    total = sum(study.max_seconds for study in estimate) / num_workers
    print(f"At most {spell_seconds(total)} with {num_workers} workers, if no trial met the goal; nothing was trained.")


def _print_saving(sweep: Sweep, lab: Path) -> None:
    """Print how many steps the race trained, against the full protocol on the same points."""
    from batchlab.store.lab import Lab

    store = Lab.open(lab)
    records = [store.study_folder(sweep.name, batch_size).record() for batch_size in sweep.search.batch_sizes]
    for record in records:
        if record.note:
            warn(f"batch size {record.facts.batch_size}: {record.note}")
    trained = sum(record.trained_steps or 0 for record in records)
    if sweep.search.protocol != "race" or not trained:
        return
    full = sum(record.full_steps for record in records)
    print(
        f"The race trained {trained:,} steps; every trial to its budget would be {full:,} ({full / trained:.0f} times)."
    )
