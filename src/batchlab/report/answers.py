"""From a stored lab to its answers: the one place where the analysis meets what lies on disk. It only reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from batchlab.analysis import check_measured, is_measured
from batchlab.analysis import summary as analysis
from batchlab.analysis.summary import WorkloadSummary
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.core.sweep import Sweep
from batchlab.errors import InputError, LabError
from batchlab.report.findings import Findings
from batchlab.report.planned import plan_of
from batchlab.report.shown import ShownSummary
from batchlab.report.tables import published_beside
from batchlab.store.lab import Lab, SweepResults
from batchlab.store.rejected import count_rejected
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
    tables = [result.measurements for result in found.results if len(result.measurements)]
    is_whole = all(is_measured(table, name) for table in tables for name in metrics)
    return found if is_whole else lab.results(sweep)


def summarise_results(results: SweepResults, goal: Goal | None = None, trials: int | None = None) -> ShownSummary:
    """Return the summary of a sweep's finished studies for a goal, the sweep's where None."""
    goal = goal or results.sweep.goal
    if goal is None:
        raise InputError(f'No goal is known for {results.sweep.workload}; give one: --goal "val/... < ...".')
    if not results.results and results.unfinished:
        num, sweep = len(results.unfinished), results.sweep.name
        raise InputError(f"None of the {num} studies of sweep {sweep} is finished yet; `batchlab run` goes on with it.")
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


@dataclass(frozen=True)
class Gathered:
    """What a report can tell of a lab."""

    findings: list[Findings] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is left out or not finished, a sentence each."""

    problems: list[LabError] = field(default_factory=list)
    """Files that cannot be read."""

    rejected: int = 0
    """Broken studies and trials that imports have left out, of workloads that have no sweep in the lab."""


def gather(lab: Lab, name: str | None = None, sweep_name: str | None = None, goal: Goal | None = None) -> Gathered:
    """Return the findings of one sweep, or of all where no name is given, for a goal, each sweep's own where None."""
    is_one, damaged = bool(name or sweep_name), list[LabError]()
    if is_one:
        sweeps = [lab.find(name, sweep_name)]
    else:
        sweeps, damaged = lab.readable_sweeps()
    rejected, problems = _rejected(lab, sweeps)
    names = lab.sweep_names()
    others = 0 if is_one else sum(number for each, number in rejected.items() if each not in names)
    gathered = Gathered(problems=[*damaged, *problems], rejected=others)
    unmeasured: list[StudyResult] = []
    for sweep in sweeps:
        results = read_results(lab, sweep, goal)  # one at a time: together they may be larger than the memory
        gathered.problems.extend(results.problems)
        if reason := _left_out(results, goal):
            gathered.notes.append(f"sweep {sweep.name} {reason}; it is left out")
            unmeasured = unmeasured or results.results[:1]
            continue
        found = replace(findings(results, goal), rejected=rejected[sweep.name])
        plan, unreadable = plan_of(lab, sweep, found.summary)
        gathered.problems.extend(unreadable)
        gathered.findings.append(replace(found, plan=plan))
        gathered.notes.extend(shortfalls(results, found.summary))
    if goal is not None and unmeasured and not gathered.findings:  # by no sweep at all: then it is misspelt
        check_measured(unmeasured[0].measurements, goal.metric)
    return gathered


def _rejected(lab: Lab, sweeps: list[StoredSweep]) -> tuple[Counter[str], list[LabError]]:
    """Return how much imports have left out of each sweep, and why that cannot be told."""
    try:
        return count_rejected(lab.folder, {sweep.name: sweep.workload for sweep in sweeps}), []
    except LabError as error:
        return Counter(), [error]


def findings(results: SweepResults, goal: Goal | None = None) -> Findings:
    """Return everything that a report tells of one sweep."""
    summary = summarise_results(results, goal)
    trials = [trial for result in results.results for trial in result.trials]
    spec = results.sweep.spec
    return Findings(
        summary=summary,
        spec=spec.plain() if spec else {},
        environment=_joined([trial.environment for trial in trials if trial.environment]),
        protocol=_protocol(results, spec) if spec else results.sweep.source or {},
        published=published_beside(summary),
    )


def _left_out(results: SweepResults, goal: Goal | None) -> str | None:
    if not results.results:
        return "has no finished study that can be read"
    if goal is None:
        return None if results.sweep.goal else "has no known goal (--goal gives it one)"
    return None if _has_measured(results, goal) else f"did not measure {goal.metric}"


def _has_measured(results: SweepResults, goal: Goal) -> bool:
    # A study whose trials all diverged at once has no rows: nothing can be said of its metrics.
    tables = [result.measurements for result in results.results if len(result.measurements)]
    return all(is_measured(table, goal.metric) for table in tables)


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum; None where one of the numbers is not known."""
    known = list(numbers)
    return None if None in known else sum(number for number in known if number is not None)


def _protocol(results: SweepResults, spec: Sweep) -> dict[str, Any]:
    records = results.records
    known = [result.confirmation for result in results.results if result.confirmation]
    replicates = [replicate for confirmation in known for replicate in confirmation.replicates]
    return {
        "protocol": spec.search.protocol,
        "trained_steps": _sum(record.trained_steps for record in records),
        "full_steps": sum(record.full_steps for record in records),
        "confirming_steps": sum(replicate.last_step for replicate in replicates),
        "core_seconds_of_search": round(sum(record.wall_seconds or 0 for record in records), 1),
        "core_seconds_of_confirming": round(sum(replicate.wall_seconds or 0 for replicate in replicates), 1),
        "pack_sizes": {str(record.facts.batch_size): record.pack_size for record in records},
    }


def _joined(environments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is known of the machines of some trials: all that there is where they differ.

    >>> _joined([{"host": "a", "packages": {"torch": "2.13.0"}}, {"host": "b", "packages": {"torch": "2.13.0"}}])
    {'host': 'a, b', 'packages': {'torch': '2.13.0'}}
    """
    joined: dict[str, Any] = {}
    for name in dict.fromkeys(name for each in environments for name in each):
        values = [each[name] for each in environments if name in each]
        if all(isinstance(value, Mapping) for value in values):
            joined[name] = _joined(values)
        else:
            different = list(dict.fromkeys(map(str, values)))
            joined[name] = values[0] if len(different) == 1 else ", ".join(different)
    return joined
