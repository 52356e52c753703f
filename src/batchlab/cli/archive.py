"""batchlab import and export: the layout in which the paper's measurements were published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batchlab.cli.options import DEFAULT_LAB, LabOption, print_table, warn
from batchlab.cli.shares import share_bar

if TYPE_CHECKING:
    from batchlab.store.archive.importer import ImportOutcome


def import_(
    path: Annotated[Path, typer.Argument(help="An unpacked archive, or a .tar, .tar.bz2, .tar.gz, .tar.xz, .tar.zst.")],
    lab: LabOption = DEFAULT_LAB,
    strict: Annotated[bool, typer.Option("--strict", help="End at the first broken study or trial.")] = False,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; one for each core.")] = None,
) -> None:
    """Import a published archive. Run it again to go on after a stop.

    What is broken is named in the lab's rejected.json and the rest is imported. At the end the trials are
    compared with the inventory of the paper's archive, workload by workload.
    """
    from batchlab.store.archive.importer import import_archive

    with share_bar("importing") as report:
        outcome = import_archive(path, lab, strict=strict, processes=workers, report=report)
    _print_outcome(outcome)
    if outcome.rejected:
        warn(f"{len(outcome.rejected)} broken studies or trials were left out; see {lab / 'rejected.json'}")


def export(
    out: Annotated[Path, typer.Argument(help="The folder to write to.")],
    lab: LabOption = DEFAULT_LAB,
    workload: Annotated[str | None, typer.Option("--workload", help="Only this workload.")] = None,
) -> None:
    """Export a lab in the published layout. The authors' own loader reads it."""
    from batchlab.store.archive.exporter import export_lab
    from batchlab.store.lab import Lab

    store = Lab.open(lab)
    studies = sum(1 for _ in export_lab(store, out, workload))
    print(f"{out}: {studies} studies")
    sweeps = [store.find(workload)] if workload else store.sweeps()
    folders = [store.study_folder(sweep.name, size) for sweep in sweeps for size in sweep.batch_sizes]
    if any(folder.confirmation() for folder in folders):
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
