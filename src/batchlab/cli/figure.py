"""batchlab figure: one figure as SVG, PNG and CSV."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batchlab.cli.options import (
    DEFAULT_LAB,
    GoalOption,
    LabOption,
    SweepOption,
    TrialsOption,
    WorkloadArgument,
    fail_on_problems,
    summarise_sweep,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from batchlab.core.result import StudyResult
    from batchlab.errors import LabError
    from batchlab.store.lab import Lab

NAME_HELP = (
    "Which figure: steps-to-result or metaparameters of one sweep, compare of all sweeps, paper-1 to paper-11 or "
    "paper-all of a whole lab."
)


def figure(
    name: Annotated[str, typer.Argument(help=NAME_HELP)],
    workload: WorkloadArgument = None,
    lab: LabOption = DEFAULT_LAB,
    out: Annotated[Path, typer.Option("--out", help="The folder for the files.")] = Path("figures"),
    goal: GoalOption = None,
    trials: TrialsOption = None,
    sweep: SweepOption = None,
    published: Annotated[
        bool, typer.Option("--published", help="Overlay the published points, read off the paper's Figure 1.")
    ] = False,
) -> None:
    """Draw a figure as SVG, PNG and CSV. Prints where the files are."""
    from batchlab.plots import FIGURES, figure_names
    from batchlab.store.lab import Lab

    names = figure_names(name)
    store = Lab.open(lab)
    needs = FIGURES[names[0]].needs
    if published and not FIGURES[names[0]].takes_published:
        raise typer.BadParameter("--published goes with the paper's figures only")
    if needs == "lab":
        _check_paper_options(workload, goal, trials, sweep)
        _draw_of_lab(store, names, out, published)
    elif needs == "sweeps":
        if workload or sweep:
            raise typer.BadParameter("compare shows all sweeps of the lab; leave out the workload and --sweep")
        _draw_of_sweeps(store, name, out, goal, trials)
    else:
        results, summary = summarise_sweep(store, workload, sweep, goal, trials)
        _print_saved(name, summary, out / f"{results.sweep.name}-{name}", results.problems)


def _check_paper_options(*options: object) -> None:
    if any(option is not None for option in options):
        raise typer.BadParameter("the paper's figures have their own workloads, goals and trials; give --lab and --out")


def _draw_of_lab(store: Lab, names: Sequence[str], out: Path, published: bool) -> None:
    from batchlab.plots import FIGURES

    stored = {sweep.workload for sweep in store.sweeps()}
    for name in names:
        problems: list[LabError] = []
        results = partial(_results, store, stored, FIGURES[name].reads, problems)
        _print_saved(name, results, out / name, problems, published)


def _draw_of_sweeps(store: Lab, name: str, out: Path, goal: str | None, trials: int | None) -> None:
    found = {sweep.name: summarise_sweep(store, None, sweep.name, goal, trials) for sweep in store.sweeps()}
    problems = [problem for results, _ in found.values() for problem in results.problems]
    _print_saved(name, {name: summary for name, (_, summary) in found.items()}, out / name, problems)


def _print_saved(name: str, source: object, stem: Path, problems: Sequence[LabError], published: bool = False) -> None:
    from batchlab.plots import save_figure

    for path in save_figure(name, source, stem, published=published):
        print(path)
    fail_on_problems(problems)


def _results(
    store: Lab, stored: set[str], reads: Mapping[str, list[str]], problems: list[LabError], workload: str
) -> list[StudyResult] | None:
    """Return the studies of a workload, with the metrics that a figure reads; None if it is not among the `stored`."""
    if workload not in stored:
        return None
    found = store.results(store.find(workload), reads[workload])
    problems += found.problems
    return found.results
