"""batchlab figure: one figure as SVG, PNG and CSV."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
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
    from batchlab.analysis.summary import WorkloadSummary
    from batchlab.core.result import StudyResult
    from batchlab.errors import LabError
    from batchlab.store.lab import Lab


class FigureName(StrEnum):
    """The figures that can be drawn: two of one workload, one of all sweeps of a lab, and those of the paper."""

    STEPS_TO_RESULT = "steps-to-result"
    METAPARAMETERS = "metaparameters"
    COMPARE = "compare"
    PAPER_1 = "paper-1"
    PAPER_2 = "paper-2"
    PAPER_3 = "paper-3"
    PAPER_4 = "paper-4"
    PAPER_5 = "paper-5"
    PAPER_6 = "paper-6"
    PAPER_7 = "paper-7"
    PAPER_8 = "paper-8"
    PAPER_9 = "paper-9"
    PAPER_10 = "paper-10"
    PAPER_11 = "paper-11"
    PAPER_ALL = "paper-all"


def figure(
    name: Annotated[FigureName, typer.Argument(help="Which figure; compare and paper-N are of a whole lab.")],
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
    from batchlab.store.lab import Lab

    store = Lab.open(lab)
    if name.startswith("paper-"):
        _check_paper_options(workload, goal, trials, sweep)
        _draw_paper(store, name, out, published)
        return
    if published:
        raise typer.BadParameter("--published goes with the paper's figures only")
    if name is FigureName.COMPARE:
        if workload or sweep:
            raise typer.BadParameter("compare shows all sweeps of the lab; leave out the workload and --sweep")
        _draw_compared(store, out, goal, trials)
        return
    results, summary = summarise_sweep(store, workload, sweep, goal, trials)
    for path in _save(name, summary, out / f"{results.sweep.name}-{name}"):
        print(path)
    fail_on_problems(results.problems)


def _check_paper_options(*options: object) -> None:
    if any(option is not None for option in options):
        raise typer.BadParameter("the paper's figures have their own workloads, goals and trials; give --lab and --out")


def _draw_paper(store: Lab, name: FigureName, out: Path, published: bool) -> None:
    from batchlab import plots

    stored = {sweep.workload for sweep in store.sweeps()}
    wanted = list(plots.PAPER_FIGURES) if name is FigureName.PAPER_ALL else [int(name.removeprefix("paper-"))]
    for number in wanted:
        needs = plots.PAPER_FIGURES[number].needs
        problems: list[LabError] = []
        data = plots.paper_data(number, partial(_results, store, stored, needs, problems), published=published)
        for path in plots.save(plots.draw_sheet(data), data, out / f"paper-{number}"):
            print(path)
        fail_on_problems(problems)


def _draw_compared(store: Lab, out: Path, goal: str | None, trials: int | None) -> None:
    """Draw the steps to one goal of every sweep of a lab."""
    from batchlab import plots

    found = {sweep.name: summarise_sweep(store, None, sweep.name, goal, trials) for sweep in store.sweeps()}
    data = plots.compare_data({name: summary for name, (_, summary) in found.items()})
    for path in plots.save(plots.compare_figure(data), data, out / "compare"):
        print(path)
    fail_on_problems([problem for results, _ in found.values() for problem in results.problems])


def _results(
    store: Lab, stored: set[str], needs: Mapping[str, list[str]], problems: list[LabError], workload: str
) -> list[StudyResult] | None:
    """Return the studies of a workload, with the metrics that a figure needs; None if it is not among the `stored`."""
    if workload not in stored:
        return None
    found = store.results(store.find(workload), needs[workload])
    problems += found.problems
    return found.results


def _save(name: FigureName, summary: WorkloadSummary, stem: Path) -> list[Path]:
    from batchlab import plots

    if name is FigureName.STEPS_TO_RESULT:
        steps = plots.steps_curve_data(summary)
        return plots.save(plots.steps_curve_figure(steps), steps, stem)
    best = plots.metaparameters_data(summary)
    return plots.save(plots.metaparameters_figure(best), best, stem)
