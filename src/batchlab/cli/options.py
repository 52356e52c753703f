"""Options that several commands share, and how they print."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batchlab.cli.outputs import warn as warn
from batchlab.core.limits import MOST_WORKERS

if TYPE_CHECKING:
    from batchlab.core.goal import Goal
    from batchlab.report.shown import ShownSummary
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
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", min=1, max=MOST_WORKERS, help="Processes; one for each GPU, or else for each core."),
]
GpusOption = Annotated[
    int | None,
    typer.Option("--gpus", min=0, max=MOST_WORKERS, help="GPUs, one for each worker; all that there are. 0: none."),
]
ExecutorOption = Annotated[
    str, typer.Option("--executor", help="local: processes of this machine. ray: a Ray cluster.")
]
AddressOption = Annotated[
    str | None, typer.Option("--address", help="The Ray cluster's; else one that is found, else one of this machine.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
WorkloadArgument = Annotated[
    str | None,
    typer.Argument(help="dataset/model/optimizer or the sweep's name; may be left out where the lab holds one."),
]
SweepOption = Annotated[str | None, typer.Option("--sweep", help="The sweep's name, where two share a workload.")]
GoalOption = Annotated[str | None, typer.Option("--goal", help='Another goal than the sweep\'s: "val/risk <= 0.1".')]
TrialsOption = Annotated[int | None, typer.Option("--trials", min=1, help="Use the first N complete trials only.")]
DEFAULT_LAB = Path("lab")


def summarise_or_exit(
    lab: Lab,
    workload: str | None,
    sweep_name: str | None,
    goal_text: str | None = None,
    trials: int | None = None,
    metric: str | None = None,
) -> tuple[SweepResults, ShownSummary]:
    """Return the results of the sweep that is meant and their summary; say on stderr what is missing.

    Of its metrics the goal's is read, and `metric`. Where nothing of it can be read, the command ends here, with 1.
    """
    from batchlab.report.answers import read_results, shortfalls, summarise_results, with_plan

    sweep, goal = lab.find(workload, sweep_name), read_goal(goal_text)
    results = read_results(lab, sweep, goal, metric)
    if not results.results:
        fail_on_problems(results.problems)
    summary = with_plan(lab, results, summarise_results(results, goal, trials))
    for sentence in shortfalls(results, summary, trials):
        warn(sentence)
    return results, summary


def read_goal(text: str | None) -> Goal | None:
    """Return the goal that `--goal` writes; None where it was not given."""
    from batchlab.core.goal import Goal

    return None if text is None else Goal.parse(text, "--goal")


def fail_on_problems(problems: Sequence[object]) -> None:
    """Say what could not be read of a lab and end with exit code 1, once the rest has been printed."""
    for problem in problems:
        warn(str(problem))
    if problems:
        raise typer.Exit(1)


def tell(sentence: str) -> None:
    """Print a sentence on stderr, at once: how far something is."""
    print(sentence, file=sys.stderr, flush=True)


def print_figure(
    name: str, source: object, stem: Path, options: Mapping[str, Any] | None = None, *, as_json: bool = False
) -> None:
    """Draw a figure and print where its files are: on stderr where stdout is JSON."""
    from batchlab.plots import save_figure

    for path in save_figure(name, source, stem, **(options or {})):
        print(path, file=sys.stderr if as_json else sys.stdout)


def print_json(data: Any) -> None:
    """Print JSON on stdout."""
    print(json.dumps(data, indent=1))


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] | None = None, key: int | None = None
) -> None:
    """Print a plain table on stdout, no wider than the terminal; columns right-aligned but those in `left`, the last
    where None. What does not fit beside goes below its row, or, with a `key`, below the table under that column again.

    >>> print_table(["B", "steps"], [["1", "1,234"], ["16", "80"]])
     B  steps
     1  1,234
    16  80
    """
    from batchlab.report.text_table import text_table

    print(text_table(header, rows, terminal_width(), left, key))


def print_text(text: str) -> None:
    """Print a paragraph on stdout, broken between words where the terminal ends."""
    width = terminal_width()
    # The sign stays with its number.
    kept = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = [kept] if width is None else textwrap.wrap(kept, width, break_long_words=False, break_on_hyphens=False)
    print("\n".join(lines).replace("\N{NO-BREAK SPACE}", " "))


def terminal_width() -> int | None:
    """Return how wide a line may be: what $COLUMNS says, else the terminal's width.

    None, no limit, where the output goes into a file or a pipe: whoever reads it there wants one line a row.
    """
    if os.environ.get("COLUMNS", "").isdecimal() or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None
