"""batchlab figure: one figure as SVG, PNG and CSV."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batchlab.cli.options import (
    DEFAULT_LAB,
    GoalOption,
    LabOption,
    TrialsOption,
    WorkloadArgument,
    fail_on_problems,
    print_figure,
    summarise_or_exit,
    warn,
)
from batchlab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from batchlab.analysis import Throughput
    from batchlab.analysis.summary import WorkloadSummary
    from batchlab.core.result import StudyResult
    from batchlab.errors import LabError
    from batchlab.plots import TrainedSweep
    from batchlab.plots.registry import Figure
    from batchlab.store.lab import Lab, SweepResults
    from batchlab.store.stored_sweep import StoredSweep

# Written out, for the table of figures needs matplotlib, and --help is not to wait for it; a test holds them together.
NAME_HELP = (
    "Which figure: steps-to-result, metaparameters, curves, points, budgets, plan or throughput of one sweep, compare "
    "of several, paper-1 to paper-11 or paper-all of a whole lab."
)


class Against(StrEnum):
    """What lies along the x axis of training curves."""

    STEPS = "steps"
    EXAMPLES = "examples"
    SECONDS = "seconds"


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
    batch_size: Annotated[
        list[int] | None,
        typer.Option("--batch-size", min=1, help="Of curves and points: show this one; may be given several times."),
    ] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="Of curves: another metric than the goal's.")] = None,
    against: Annotated[
        Against | None, typer.Option("--against", help="Of curves: what lies along the x axis; steps if left out.")
    ] = None,
) -> None:
    """Draw a figure as SVG, PNG and CSV. Prints where the files are."""
    from batchlab.plots import FIGURES, figure_names
    from batchlab.store.lab import Lab

    names = figure_names(name)
    store, kind = Lab.open(lab), FIGURES[names[0]]
    options = _taken(name, kind, {"published": published, "metric": metric, "against": against and against.value})
    if batch_size and kind.most_batch_sizes is None:
        takers = _listed(each.name for each in FIGURES.values() if each.most_batch_sizes is not None)
        raise typer.BadParameter(f"{name} shows all batch sizes; leave out --batch-size, which {takers} take")
    asked = _Asked(name, kind, out, workload, sweep or [], goal, trials, options, batch_size or [])
    if kind.needs in ("plan", "throughput"):
        _draw_of_throughput(store, asked)
    elif kind.needs == "lab":
        _check_paper_options(workload, goal, trials, sweep)
        _draw_of_lab(store, names, out, options)
    elif kind.needs == "sweeps":
        _draw_of_sweeps(store, asked)
    else:
        _draw_of_sweep(store, asked)


@dataclass(frozen=True)
class _Asked:
    """What is asked of a figure."""

    name: str
    kind: Figure
    out: Path
    workload: str | None
    sweeps: Sequence[str]
    goal: str | None
    trials: int | None
    options: Mapping[str, Any]
    """Those that the figure takes and that were given."""

    batch_sizes: Sequence[int]

    def summarise(self, store: Lab, sweep: str | None) -> tuple[SweepResults, WorkloadSummary]:
        """Return the results of a sweep and their summary, by the goal and the trials that were asked for."""
        return summarise_or_exit(store, self.workload, sweep, self.goal, self.trials, self.options.get("metric"))

    def one_sweep(self, way_out: str = "") -> str | None:
        """Return the sweep that was named, if one was; BadParameter where several were."""
        if len(self.sweeps) > 1:
            raise typer.BadParameter(f"{self.name} shows one sweep; give --sweep once{way_out}")
        return self.sweeps[0] if self.sweeps else None


def _draw_of_sweep(store: Lab, asked: _Asked) -> None:
    """Draw what one sweep has found, its curves among it where the figure needs them."""
    from batchlab.plots import FIGURES

    others = _listed((each.name for each in FIGURES.values() if each.needs == "sweeps"), "or")
    results, summary = asked.summarise(store, asked.one_sweep(f", or draw {others}"))
    _warn_unpublished([summary] if "published" in asked.options else [])
    source: object = summary
    if asked.kind.needs == "trials":
        timed = _times(store, results.sweep) if asked.options.get("against") == Against.SECONDS else None
        source = _trained(results, summary, asked, timed)
    print_figure(asked.name, source, asked.out / f"{results.sweep.name}-{asked.name}", asked.options)
    fail_on_problems(results.problems)


def _taken(name: str, kind: Figure, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given; BadParameter for one that the figure does not take."""
    from batchlab.plots import FIGURES

    given = {option: value for option, value in options.items() if value}
    for option in [option for option in given if option not in kind.takes]:
        if option == "published":
            raise typer.BadParameter(f"nothing was published that {name} could show; leave out --published")
        takers = _listed((each.name for each in FIGURES.values() if option in each.takes), "or")
        raise typer.BadParameter(f"{name} takes no --{option}; leave it out, or draw {takers}")
    return given


def _listed(names: Iterable[str], word: str = "and") -> str:
    """Return names as a sentence has them."""
    *most, last = names
    return f"{', '.join(most)} {word} {last}" if most else last


def _trained(
    results: SweepResults, summary: WorkloadSummary, asked: _Asked, throughput: Throughput | None
) -> TrainedSweep:
    """Return a sweep with its curves, of the batch sizes that are to be shown; say which of too many are left out."""
    from batchlab.analysis import first_trials
    from batchlab.analysis.text import listed
    from batchlab.plan.train_examples import num_train_examples
    from batchlab.plots import TrainedSweep

    studies = sorted(results.results, key=lambda study: study.batch_size)
    sweep = TrainedSweep(
        summary=summary,
        studies=tuple(first_trials(study, asked.trials) for study in studies),
        num_train_examples=num_train_examples(results.sweep),
        throughput=throughput,
    )
    if asked.batch_sizes:
        return sweep.only(asked.batch_sizes)
    if asked.kind.most_batch_sizes is None:
        return sweep
    sweep, left_out = sweep.spread(asked.kind.most_batch_sizes)
    if left_out:
        warn(f"left out, so that the figure stays readable: batch size {listed(left_out)}; choose with --batch-size")
    return sweep


def _check_paper_options(*options: object) -> None:
    if any(option is not None for option in options):
        raise typer.BadParameter("the paper's figures have their own workloads, goals and trials; give --lab and --out")


def _draw_of_lab(store: Lab, names: Sequence[str], out: Path, options: Mapping[str, Any]) -> None:
    """Draw the figures that the lab has something for; of several, say which it has nothing for."""
    from batchlab.plots import FIGURES

    stored = {sweep.workload for sweep in store.sweeps()}
    problems: list[LabError] = []
    refusals: list[InputError] = []
    for name in names:
        results = partial(_results, store, stored, FIGURES[name].reads, problems)
        try:
            print_figure(name, results, out / name, options)
        except InputError as error:
            refusals.append(error)
    if len(refusals) == len(names) == 1:
        raise refusals[0]
    if len(refusals) == len(names):
        raise InputError(f"The lab has nothing to show for any figure of the paper. {refusals[0]}")
    for refusal in refusals:
        warn(str(refusal))
    fail_on_problems(list(dict.fromkeys(map(str, problems))))


def _times(store: Lab, sweep: StoredSweep) -> Throughput | None:
    """Return measured step times; None where there are none, or where steps do not all take the same time."""
    from batchlab.report.step_times import find_throughput

    is_steady = sweep.spec is not None and not sweep.spec.workload.schedules_batch_size
    return find_throughput(store, sweep)[0] if is_steady else None


def _draw_of_throughput(store: Lab, asked: _Asked) -> None:
    """Draw what follows from stored step times."""
    from batchlab.report.lab_plan import check_one_batch_size, plan_summary
    from batchlab.report.step_times import needed_throughput

    results, summary = asked.summarise(store, asked.one_sweep())
    check_one_batch_size(results.sweep, summary)
    source: object
    source = throughput = needed_throughput(store, results.sweep)
    if asked.kind.needs == "plan":
        source = plan_summary(summary, throughput, throughput.planned_workers[-1])
    print_figure(asked.name, source, asked.out / f"{results.sweep.name}-{asked.name}")
    fail_on_problems(results.problems)


def _draw_of_sweeps(store: Lab, asked: _Asked) -> None:
    """Draw several sweeps beside each other: those that were named, else all that have something to show."""
    if asked.workload:
        raise typer.BadParameter(f"{asked.name} shows several sweeps; choose them with --sweep, not by a workload")
    problems: list[LabError] = []
    wanted = list(dict.fromkeys(asked.sweeps))
    if not wanted:
        readable, problems = store.readable_sweeps()
        wanted = [sweep.name for sweep in readable if _has_finished(store, sweep)] or [each.name for each in readable]
    found = {one: summarise_or_exit(store, None, one, asked.goal, asked.trials) for one in wanted}
    summaries = {one: summary for one, (_, summary) in found.items()}
    _warn_unpublished(list(summaries.values()) if "published" in asked.options else [])
    print_figure(asked.name, summaries, asked.out / asked.name, asked.options)
    fail_on_problems([*problems, *(problem for results, _ in found.values() for problem in results.problems)])


def _has_finished(store: Lab, sweep: StoredSweep) -> bool:
    """Return whether a sweep has anything to draw; say that it is left out where it does not."""
    if any(store.is_finished(sweep.name, size) for size in sweep.batch_sizes):
        return True
    warn(f"sweep {sweep.name} has no finished study; it is left out")
    return False


def _warn_unpublished(summaries: Sequence[WorkloadSummary]) -> None:
    from batchlab.published.comparison import counterpart, why_not_compared

    for summary in summaries:
        if counterpart(summary) is None:
            warn(why_not_compared(summary))


def _results(
    store: Lab, stored: set[str], reads: Mapping[str, list[str]], problems: list[LabError], workload: str
) -> list[StudyResult] | None:
    """Return the studies of a workload, with the metrics that a figure reads; None if it is not among the `stored`."""
    if workload not in stored:
        return None
    found = store.results(store.find(workload), reads[workload])
    problems += found.problems
    return found.results
