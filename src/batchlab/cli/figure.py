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
    TrialsOption,
    WorkloadArgument,
    fail_on_problems,
    summarise_sweep,
    warn,
)
from batchlab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from batchlab.analysis.summary import WorkloadSummary
    from batchlab.core.result import StudyResult
    from batchlab.errors import LabError
    from batchlab.store.lab import Lab

NAME_HELP = (
    "Which figure: steps-to-result or metaparameters of one sweep, compare of several, paper-1 to paper-11 or "
    "paper-all of a whole lab."
)


def figure(
    name: Annotated[str, typer.Argument(help=NAME_HELP)],
    workload: WorkloadArgument = None,
    lab: LabOption = DEFAULT_LAB,
    out: Annotated[Path, typer.Option("--out", help="The folder for the files.")] = Path("figures"),
    goal: GoalOption = None,
    trials: TrialsOption = None,
    sweep: Annotated[
        list[str] | None, typer.Option("--sweep", help="The sweep's name; for compare several times, else all.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Overlay the paper's points, read off its Figures 1 and 3.")
    ] = False,
) -> None:
    """Draw a figure as SVG, PNG and CSV. Prints where the files are."""
    from batchlab.plots import FIGURES, figure_names
    from batchlab.store.lab import Lab

    names, sweeps = figure_names(name), sweep or []
    store = Lab.open(lab)
    needs = FIGURES[names[0]].needs
    if published and not FIGURES[names[0]].takes_published:
        raise typer.BadParameter(f"nothing was published that {name} could show; leave out --published")
    if needs == "lab":
        _check_paper_options(workload, goal, trials, sweep)
        _draw_of_lab(store, names, out, published)
    elif needs == "sweeps":
        if workload:
            raise typer.BadParameter(f"{name} shows several sweeps; choose them with --sweep, not by a workload")
        _draw_of_sweeps(store, name, sweeps, out, goal, trials, published)
    else:
        if len(sweeps) > 1:
            raise typer.BadParameter(f"{name} shows one sweep; give --sweep once, or draw compare")
        results, summary = summarise_sweep(store, workload, sweeps[0] if sweeps else None, goal, trials)
        _warn_unpublished([summary] if published else [])
        _print_saved(name, summary, out / f"{results.sweep.name}-{name}", published)
        fail_on_problems(results.problems)


def _check_paper_options(*options: object) -> None:
    if any(option is not None for option in options):
        raise typer.BadParameter("the paper's figures have their own workloads, goals and trials; give --lab and --out")


def _draw_of_lab(store: Lab, names: Sequence[str], out: Path, published: bool) -> None:
    """Draw the figures that the lab has something for; of several, say which it has nothing for."""
    from batchlab.plots import FIGURES

    stored = {sweep.workload for sweep in store.sweeps()}
    problems: list[LabError] = []
    refusals: list[InputError] = []
    for name in names:
        results = partial(_results, store, stored, FIGURES[name].reads, problems)
        try:
            _print_saved(name, results, out / name, published)
        except InputError as error:
            refusals.append(error)
    if len(refusals) == len(names) == 1:
        raise refusals[0]
    if len(refusals) == len(names):
        raise InputError(f"The lab has nothing to show for any figure of the paper. {refusals[0]}")
    for refusal in refusals:
        warn(str(refusal))
    fail_on_problems(list(dict.fromkeys(map(str, problems))))


def _draw_of_sweeps(
    store: Lab, name: str, sweeps: Sequence[str], out: Path, goal: str | None, trials: int | None, published: bool
) -> None:
    wanted = list(dict.fromkeys(sweeps)) or [sweep.name for sweep in store.sweeps()]
    found = {one: summarise_sweep(store, None, one, goal, trials) for one in wanted}
    summaries = {one: summary for one, (_, summary) in found.items()}
    _warn_unpublished(list(summaries.values()) if published else [])
    _print_saved(name, summaries, out / name, published)
    fail_on_problems([problem for results, _ in found.values() for problem in results.problems])


def _warn_unpublished(summaries: Sequence[WorkloadSummary]) -> None:
    from batchlab.published.points import published_curve

    for summary in summaries:
        if published_curve(summary.workload, summary.goal) is None:
            warn(f"no published points are known of {summary.workload} for {summary.goal}")


def _print_saved(name: str, source: object, stem: Path, published: bool) -> None:
    from batchlab.plots import save_figure

    for path in save_figure(name, source, stem, published=published):
        print(path)


def _results(
    store: Lab, stored: set[str], reads: Mapping[str, list[str]], problems: list[LabError], workload: str
) -> list[StudyResult] | None:
    """Return the studies of a workload, with the metrics that a figure reads; None if it is not among the `stored`."""
    if workload not in stored:
        return None
    found = store.results(store.find(workload), reads[workload])
    problems += found.problems
    return found.results
