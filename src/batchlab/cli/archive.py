"""batchlab import and export: the layout in which the paper's measurements were published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batchlab.cli.options import DEFAULT_LAB, LabOption, print_table, warn
from batchlab.cli.progress_bar import progress_bar
from batchlab.core.limits import MOST_WORKERS

if TYPE_CHECKING:
    from batchlab.store.archive.importer import ImportOutcome


def import_(
    path: Annotated[Path, typer.Argument(help="An unpacked archive, or a .tar, .tar.bz2, .tar.gz, .tar.xz, .tar.zst.")],
    lab: LabOption = DEFAULT_LAB,
    name: Annotated[str | None, typer.Option("--as", help="The name of its sweep, where it holds one.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Store nothing if any study or trial is broken.")] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, max=MOST_WORKERS, help="Processes; one for each core.")
    ] = None,
) -> None:
    """Import a published archive. Run it again to go on after a stop.

    Nothing in the lab is replaced: a sweep that has the name of another is refused. What is broken is named in the
    lab's rejected.json and the rest is imported. At the end the trials are compared with the inventory of the paper's
    archive, workload by workload.
    """
    from batchlab.report.words.left_out import broken_text
    from batchlab.store.archive.importer import import_archive

    with progress_bar("importing") as report:
        outcome = import_archive(path, lab, name=name, strict=strict, processes=workers, report=report)
    _print_outcome(outcome)
    if outcome.manifest:
        print(f"All files are as their manifest says; its digest is {outcome.manifest}.")
    if outcome.known:
        number, which = len(outcome.known), "" if outcome.stored else " Nothing was stored."
        sweeps = f"sweep {outcome.known[0]}" if number == 1 else f"{number} sweeps"
        print(f"The lab held {sweeps} of it already, and is as it was there.{which}")
    if outcome.rejected:
        warn(f"{broken_text(len(outcome.rejected))} left out; see {lab / 'rejected.json'}")


def export(
    out: Annotated[Path, typer.Argument(help="The folder to write to, new or empty.")],
    lab: LabOption = DEFAULT_LAB,
    workload: Annotated[str | None, typer.Option("--workload", help="Only this workload.")] = None,
) -> None:
    """Export a lab in the published layout. The authors' own loader reads it.

    Its manifest, batchlab.xxh128, has the digest of every file, and an import checks them. The digest that is printed
    is the manifest's, to be told to whoever gets the archive: an import prints it, too.
    """
    from batchlab.errors import shown
    from batchlab.files import MOST_PATH
    from batchlab.store.archive.exporter import export_lab
    from batchlab.store.archive.manifest import NAME
    from batchlab.store.lab import Lab
    from batchlab.store.seal import digest

    store = Lab.open(lab)
    number = sum(1 for _ in export_lab(store, out, workload))
    print(f"{shown(str(out), MOST_PATH)}: {number} studies, digest {digest((out / NAME).read_bytes())}")
    sweeps = [store.find(workload)] if workload else store.sweeps()
    studies = [
        (sweep.name, size) for sweep in sweeps for size in sweep.batch_sizes if store.is_finished(sweep.name, size)
    ]
    if any(store.study_folder(*study).confirmation() for study in studies):
        warn("the published layout has no place for replicates: what was confirmed stays in the lab")


def _print_outcome(outcome: ImportOutcome) -> None:
    from batchlab.store.archive.comparison import compare

    header = ["studies", "complete", "infeasible", "incomplete", "measurements", "inventory", "workload"]
    rows = compare(outcome.studies)
    print_table(header, [[*(f"{number:,}" for number in row.numbers), row.verdict, row.workload] for row in rows])
    matching = sum(row.verdict == "equal" for row in rows)
    known = sum(row.verdict != "not in it" for row in rows)
    share = (
        f"{matching} of the {known} that the paper's archive has equal its inventory"
        if known
        else "none is the paper's"
    )
    print(f"{len(rows)} {'workload' if len(rows) == 1 else 'workloads'}; {share}.")
