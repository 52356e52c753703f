"""From a stored lab to its answers: the one place where the analysis meets what lies on disk. It only reads."""

from __future__ import annotations

from typing import Any

from batchlab.analysis.summary import WorkloadSummary, summarise
from batchlab.core.goal import Goal
from batchlab.core.sweep import Sweep
from batchlab.errors import InputError
from batchlab.report.findings import Findings
from batchlab.store.lab import Lab, SweepResults


def summarise_sweep(
    lab: Lab,
    name: str | None = None,
    sweep_name: str | None = None,
    goal: Goal | None = None,
    trials: int | None = None,
) -> tuple[SweepResults, WorkloadSummary]:
    """Return the results of the sweep that is meant, and their summary for a goal, the sweep's where None.

    `name` is its workload's or its own; what leaves one sweep may be left out. What is missing is in the results (`unfinished`, `problems`);
    LabError where nothing can be read.
    """
    results = lab.results(lab.find(name, sweep_name))
    if not results.results and results.problems:
        raise results.problems[0]
    return results, summarise_results(results, goal, trials)


def summarise_results(results: SweepResults, goal: Goal | None = None, trials: int | None = None) -> WorkloadSummary:
    """Return the summary of a sweep's finished studies for a goal, the sweep's where None."""
    goal = goal or results.sweep.goal
    if goal is None:
        raise InputError(f'No goal is known for {results.sweep.workload}; give one: --goal "val/... < ...".')
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


def gather_findings(lab: Lab, results: SweepResults, goal: Goal | None = None) -> Findings:
    """Return everything that a report tells of one sweep."""
    summary = summarise_results(results, goal)
    trials = [trial for result in results.results for trial in result.trials]
    environment = next((trial.environment for trial in trials if trial.environment), {})
    spec = results.sweep.spec
    if spec is None:
        return Findings(summary=summary, environment=environment, protocol=results.sweep.source or {})
    return Findings(summary=summary, spec=spec.plain(), environment=environment, protocol=_protocol(lab, results, spec))


def _protocol(lab: Lab, results: SweepResults, spec: Sweep) -> dict[str, Any]:
    records = [lab.study_folder(spec.name, result.batch_size).record() for result in results.results]
    return {
        "protocol": spec.search.protocol,
        "trained_steps": sum(record.trained_steps or 0 for record in records),
        "full_steps": sum(record.full_steps for record in records),
        "core_seconds": round(sum(record.wall_seconds or 0 for record in records), 1),
        "pack_sizes": {str(record.facts.batch_size): record.pack_size for record in records},
    }
