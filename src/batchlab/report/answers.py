"""From a stored lab to its answers: the one place where the analysis meets what lies on disk. It only reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from batchlab.analysis import is_measured
from batchlab.analysis import summary as analysis
from batchlab.analysis.summary import WorkloadSummary
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.errors import InputError
from batchlab.report.lab_plan import plan_of
from batchlab.report.shown import ShownSummary
from batchlab.store.lab import Lab, SweepResults
from batchlab.store.stored_sweep import StoredSweep


def summarise(results: Iterable[StudyResult], goal: Goal, num_trials: int | None = None) -> ShownSummary:
    """Return everything there is to say about one workload, over the first `num_trials` complete trials of each study.

    It shows itself: as a table in a notebook and where it is printed, by `plot()` as a figure, by `to_pandas()`.

    >>> from batchlab.analysis import example_workload
    >>> summary = summarise(example_workload(), Goal.read("val/classification_error < 0.1"))
    >>> [(row.batch_size, row.steps) for row in summary.rows]
    [(16, 800), (64, 200), (256, 100)]
    """
    return ShownSummary.of(analysis.summarise(results, goal, num_trials))


def summarise_sweep(
    lab: Lab,
    name: str | None = None,
    sweep_name: str | None = None,
    goal: Goal | None = None,
    trials: int | None = None,
) -> tuple[SweepResults, ShownSummary]:
    """Return the results of the sweep that is meant, and their summary for a goal, the sweep's where None.

    `name` is its workload's or its own; what leaves one sweep may be left out. What is missing is in the results
    (`unfinished`, `problems`); LabError where nothing can be read.
    """
    results = lab.results(lab.find(name, sweep_name))
    if not results.results and results.problems:
        raise results.problems[0]
    return results, with_plan(lab, results, summarise_results(results, goal, trials))


def with_plan(lab: Lab, results: SweepResults, summary: ShownSummary) -> ShownSummary:
    """Return a summary with the time that the goal takes, where step times of the workload are stored.

    Step times that cannot be read join the problems of the results.
    """
    plan, problems = plan_of(lab, results.sweep, summary)
    results.problems.extend(problems)
    return replace(summary, plan=plan)


def read_results(lab: Lab, sweep: StoredSweep, goal: Goal | None = None, metric: str | None = None) -> SweepResults:
    """Return the finished studies with what a goal is measured by, the sweep's where None, and one `metric` more.

    An imported sweep has six metrics and millions of rows, and an answer needs one of them. All are read where one that
    is asked for was not measured everywhere, so that whoever says so can name those that were.
    """
    goal = goal or sweep.goal
    if goal is None:
        return lab.results(sweep)
    metrics = list(dict.fromkeys([goal.metric, *([metric] if metric else [])]))
    found = lab.results(sweep, metrics)
    return found if all(has_measured(found, name) for name in metrics) else lab.results(sweep)


def has_measured(results: SweepResults, metric: str) -> bool:
    """Return whether a metric was measured in every study; one whose trials all diverged at once has no rows."""
    return all(is_measured(each.measurements, metric) for each in results.results if len(each.measurements))


def summarise_results(results: SweepResults, goal: Goal | None = None, trials: int | None = None) -> ShownSummary:
    """Return the summary of a sweep's finished studies for a goal, the sweep's where None."""
    goal = goal or results.sweep.goal
    if goal is None:
        raise InputError(f'No goal is known for {results.sweep.workload}; give one: --goal "val/... < ...".')
    if not results.results and results.unfinished:
        num, sweep = len(results.unfinished), results.sweep.name
        which = "its one study is not" if num == 1 else f"none of its {num} studies is"
        raise InputError(f"Sweep {sweep}: {which} finished yet; `batchlab run` goes on with it.")
    return summarise(results.results, goal, trials)


def shortfalls(results: SweepResults, summary: WorkloadSummary, trials: int | None = None) -> list[str]:
    """Return what was asked for and is not there, a sentence each: unfinished studies, fewer trials."""
    found = []
    if results.unfinished:
        sizes = ", ".join(str(size) for size in results.unfinished)
        found.append(f"not finished yet: batch size {sizes} of sweep {results.sweep.name}; `batchlab run` goes on")
    few = [str(row.batch_size) for row in summary.rows if trials is not None and row.complete < trials]
    if few:
        sizes = ", ".join(few)
        found.append(f"fewer than {trials} complete trials at batch size {sizes}; those that there are were used")
    return found
