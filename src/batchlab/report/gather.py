"""From a stored lab to the findings of a report, sweep by sweep. It only reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from batchlab.analysis import check_measured
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.core.sweep import Sweep
from batchlab.errors import LabError
from batchlab.report.answers import has_measured, read_results, shortfalls, summarise_results
from batchlab.report.findings import Findings
from batchlab.report.lab_plan import plan_of
from batchlab.report.tables import published_beside
from batchlab.store.lab import Lab, SweepResults
from batchlab.store.rejected import count_rejected
from batchlab.store.stored_sweep import StoredSweep


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
        return None if results.sweep.goal else "has no known goal (give it one)"
    return None if has_measured(results, goal.metric) else f"did not measure {goal.metric}"


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


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum; None where one of the numbers is not known."""
    known = list(numbers)
    return None if None in known else sum(number for number in known if number is not None)


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
