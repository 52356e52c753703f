"""batchlab verify: whether a lab is as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batchlab.cli.options import DEFAULT_LAB, JsonOption, LabOption, print_json, print_text
from batchlab.cli.progress_bar import progress_bar

if TYPE_CHECKING:
    from batchlab.verify.findings import Verification


def verify(
    lab: LabOption = DEFAULT_LAB,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also draw the points and compute the outcomes again from the curves.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Set damaged files aside and keep the rest; `batchlab run` completes it.")
    ] = False,
    accept: Annotated[
        list[Path] | None, typer.Option("--accept", help="A file that you have edited and that is to count.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Look at every file of a lab. What is sound, what is damaged, and what follows.

    Exit code 0: all is as it was written, 1: something is not. Nothing is changed without --repair or --accept, and
    nothing is ever deleted: what is set aside lies in the lab's folder set-aside.
    """
    from batchlab.store.lab import Lab
    from batchlab.verify.accept import accept_edit
    from batchlab.verify.lab import verify_lab
    from batchlab.verify.repair import repair_lab

    folder = Lab.at(lab).folder
    for path in accept or ():
        accept_edit(Lab.open(folder), path)
    with progress_bar("repairing" if repair else "verifying") as report:
        if repair:
            done, found = repair_lab(folder, deep=deep, report=report)
        else:
            done, found = [], verify_lab(folder, deep=deep, report=report)
    if as_json:
        print_json({**found.plain(), "done": done})
    else:
        _print(found, done)
    raise typer.Exit(0 if found.is_sound else 1)


def _print(found: Verification, done: list[str]) -> None:
    from batchlab.store.migrations import FORMAT

    for line in done:
        print_text(line)
    for finding in found.findings:
        print_text(finding.problem)
        print_text(f"  What follows: {finding.follows}.")
    for path in found.foreign:
        print_text(f"{path} is not of batchlab and was left alone.")
    if found.format is not None and found.format < FORMAT:
        print_text(
            f"The lab has format {found.format}, without seals: the next `batchlab run`, or --repair, adds them."
        )
    sizes = f"{found.num_studies:,} studies, {found.num_files:,} files, {found.num_bytes:,} bytes"
    verdict = "sound" if found.is_sound else f"{len(found.findings):,} not as written"
    print_text(f"{found.lab}: {sizes}: {verdict}.")
