"""batchlab run: train the studies of a spec."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from batchlab.cli.options import (
    DEFAULT_LAB,
    AddressOption,
    DataOption,
    ExecutorOption,
    GpusOption,
    JsonOption,
    LabOption,
    WorkersOption,
    print_text,
    warn,
)
from batchlab.errors import BatchlabError, InputError, Interrupted, shown
from batchlab.processes import is_serving

if TYPE_CHECKING:
    from batchlab.core.sweep import Sweep
    from batchlab.own.sweep import OwnSweep

PATIENCE_SECONDS = 10.0
"""How long a process of torchrun with a bad spec waits for the first one to say so."""


def run(
    spec: Annotated[
        str,
        typer.Argument(help="A spec file, a name that `batchlab workloads` lists, or a file of Python of your own."),
    ],
    lab: LabOption = DEFAULT_LAB,
    workers: WorkersOption = None,
    gpus: GpusOption = None,
    executor: ExecutorOption = "local",
    address: AddressOption = None,
    data: DataOption = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a value of the spec: --set sweep.trials=8")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option("--only", help="Train these points only, as 64..95, and leave the rest to another machine."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print studies, points and cost; store nothing.")] = False,
    changed_code: Annotated[
        bool, typer.Option("--changed-code", help="Go on with a file of Python that was changed since.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Train the studies of a spec. Run it again to go on after a stop.

    Every batch size is tuned by itself: the same number of trials that do not diverge, each at its own point of
    the search space. At the end the curve is printed, as `batchlab curve` does.
    """
    if is_serving():
        _serve(spec, settings or [], data, is_run=not dry_run)
    sweep, own = load_spec(spec, settings or [])
    wanted = None if only is None else parse_only(only, sweep)
    if dry_run:
        from batchlab.cli.dry_run import print_dry_run
        from batchlab.run.executors.choose import check_kind

        check_kind(executor)
        if wanted is not None:
            raise typer.BadParameter("--only and --dry-run: a dry run counts all points of a study; leave one out")
        print_dry_run(sweep, lab, data, workers, as_json, None if own is None else own.make_trainer())
        return
    from batchlab.cli.curve import print_curve
    from batchlab.run.displays import make_display
    from batchlab.run.run_sweep import run_sweep

    run_sweep(
        own or sweep,
        lab,
        data_dir=data,
        num_workers=workers,
        num_gpus=gpus,
        executor=executor,
        address=address,
        display=make_display(),
        only=wanted,
        changed_code=changed_code,
    )
    if wanted is not None:
        _say_what_only_did(only, sweep, lab)
        return
    print_curve(lab, sweep.workload.name, sweep.name, as_json=as_json)
    if not as_json:
        _print_saving(sweep, lab)


def _serve(spec: str, settings: list[str], data: Path | None, *, is_run: bool) -> NoReturn:
    """Follow the first process that torchrun has started: it says what there is to say.

    Where the spec cannot be read it says that, too, and torchrun ends all; else it is wrong on this machine alone.
    """
    from batchlab.run.run_sweep import run_sweep

    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(Interrupted.exit_code))
    try:
        sweep, own = load_spec(spec, settings)
    except BatchlabError:
        time.sleep(PATIENCE_SECONDS)
        raise
    if is_run:
        run_sweep(own or sweep, "", data_dir=data)
    raise typer.Exit


def load_spec(spec: str, settings: list[str]) -> tuple[Sweep, OwnSweep | None]:
    """Return the sweep that is meant, and who brings it where that is a file of Python."""
    if not spec.endswith(".py"):
        from batchlab.core.workload import OwnLoop
        from batchlab.spec.load import load_sweep

        sweep = load_sweep(spec, settings)
        if isinstance(sweep.workload, OwnLoop) and not is_serving():
            warn(f"{shown(spec)} has a command, which is run once for each trial: {shown(sweep.workload.command)}")
        return sweep, None
    from batchlab.own.python_file import load_own_sweep

    if Path(spec).is_file() and not is_serving():
        warn(f"{shown(spec)} is executed, here and by every worker: a file of Python is code")
    own = load_own_sweep(Path(spec))
    own.change(settings)
    return own.spec, own


def parse_only(text: str, sweep: Sweep) -> range:
    """Return the points that `64..95`, both ends included, or `64` means; InputError for what is no such thing."""
    match = re.fullmatch("([0-9]{1,18})(?:[.][.]([0-9]{1,18}))?", text)
    points = min(study.num_points for study in sweep.studies())
    if match is None:
        raise InputError(f"--only {shown(text)}: write the points as FIRST..LAST, such as 64..95.")
    wanted = range(int(match[1]), int(match[2] or match[1]) + 1)
    if not wanted or wanted[-1] >= points:
        raise InputError(f"--only {text}: the points of this sweep are 0..{points - 1}, FIRST not after LAST.")
    return wanted


def _say_what_only_did(only: str | None, sweep: Sweep, lab: Path) -> None:
    from batchlab.store.lab import Lab

    store = Lab.open(lab)
    folders = [store.study_folder(sweep.name, batch_size) for batch_size in sweep.search.batch_sizes]
    if all(folder.record().state == "finished" and not folder.growing.has_record for folder in folders):
        warn(f"--only {only} trained nothing: the race of every batch size is closed. More sweep.trials open it again")
    else:
        warn(f"points {only} are trained; `batchlab run` without --only, or after `batchlab merge`, closes the race")


def _print_saving(sweep: Sweep, lab: Path) -> None:
    """Print how many steps the race trained, against the full protocol on the same points."""
    from batchlab.report.words.training import race_saving
    from batchlab.store.lab import Lab

    store = Lab.open(lab)
    records = [store.study_folder(sweep.name, batch_size).record() for batch_size in sweep.search.batch_sizes]
    for record in records:
        if record.note:
            warn(f"batch size {record.facts.batch_size}: {record.note}")
    trained = [record.trained_steps for record in records if record.trained_steps]
    if sweep.search.protocol != "race" or len(trained) < len(records) or not all(each.full_steps for each in records):
        return
    print_text(race_saving(sum(trained), sum(record.full_steps for record in records)))
