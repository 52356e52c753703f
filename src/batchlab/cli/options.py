"""Options that several commands share, and how they print."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from batchlab.analysis.summary import WorkloadSummary
    from batchlab.core.goal import Goal
    from batchlab.store.lab import Lab, SweepResults


def _checked_folder(folder: Path | None) -> Path | None:
    """Return the data folder; DataError where it, or the one that the variable names, is none, used or not."""
    from batchlab.data.files import check_data_folders

    check_data_folders(folder)
    return folder


LabOption = Annotated[Path, typer.Option("--lab", help="The lab's folder.")]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Where dataset files lie; else $BATCHLAB_DATA, else they are fetched.",
        callback=_checked_folder,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
WorkloadArgument = Annotated[
    str | None, typer.Argument(help="dataset/model/optimizer; may be left out where the lab holds one.")
]
SweepOption = Annotated[str | None, typer.Option("--sweep", help="The sweep's name, where two share a workload.")]
GoalOption = Annotated[str | None, typer.Option("--goal", help='Another goal than the sweep\'s: "val/risk <= 0.1".')]
TrialsOption = Annotated[int | None, typer.Option("--trials", min=1, help="Use the first N complete trials only.")]
DEFAULT_LAB = Path("lab")


def summarise_sweep(
    lab: Lab, workload: str | None, sweep_name: str | None, goal_text: str | None = None, trials: int | None = None
) -> tuple[SweepResults, WorkloadSummary]:
    """Return the results of the sweep that is meant and their summary; say on stderr what is missing."""
    from batchlab.core.goal import Goal

    sweep = lab.find(workload, sweep_name)
    goal = None if goal_text is None else Goal.parse(goal_text, "--goal")
    results = lab.results(sweep)
    if not results.results:
        fail_on_problems(results.problems)
    return results, summarise_results(results, goal, trials)


def summarise_results(results: SweepResults, goal: Goal | None = None, trials: int | None = None) -> WorkloadSummary:
    """Return the summary for a goal, the sweep's where None; say on stderr which batch sizes are not finished."""
    from batchlab.analysis.summary import summarise
    from batchlab.errors import InputError

    if results.unfinished:
        sizes = ", ".join(str(size) for size in results.unfinished)
        warn(f"not finished yet: batch size {sizes} of sweep {results.sweep.name}; `batchlab run` goes on")
    goal = goal or results.sweep.goal
    if goal is None:
        raise InputError(f'No goal is known for {results.sweep.workload}; give one: --goal "val/... < ...".')
    summary = summarise(results.results, goal, trials)
    few = [str(row.batch_size) for row in summary.rows if trials is not None and row.complete < trials]
    if few:
        warn(f"fewer than {trials} complete trials at batch size {', '.join(few)}; those that there are were used")
    return summary


def fail_on_problems(problems: Sequence[object]) -> None:
    """Say what could not be read of a lab and end with exit code 2, once the rest has been printed."""
    for problem in problems:
        warn(str(problem))
    if problems:
        raise typer.Exit(2)


def warn(sentence: str) -> None:
    """Print one line on stderr."""
    print(f"batchlab: {sentence}", file=sys.stderr)


def print_json(data: Any) -> None:
    """Print JSON on stdout."""
    print(json.dumps(data, indent=1))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a plain table on stdout, columns right-aligned but the last.

    >>> print_table(["B", "steps"], [["1", "1,234"], ["16", "80"]])
     B  steps
     1  1,234
    16  80
    """
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
        print("  ".join([*cells, row[-1]]).rstrip())
