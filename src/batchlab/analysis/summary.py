"""The summary of a workload: everything that its table, its figures and its report say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from batchlab.analysis.critical_batch import MIN_BATCH_SIZES, CriticalBatchFit, fit_critical_batch
from batchlab.analysis.regimes import Scaling, measure_scaling
from batchlab.analysis.steps_to_result import StepsToResult, steps_to_result
from batchlab.analysis.text import count, listed
from batchlab.analysis.tuning import TunedPoint, tuned_points
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.errors import InputError


@dataclass(frozen=True, kw_only=True)
class WorkloadSummary:
    """Steps to result of one workload at every batch size, and what follows from them."""

    workload: str
    goal: Goal
    rows: tuple[StepsToResult, ...]
    """One for each batch size, ascending."""

    scaling: Scaling
    """Efficiencies and regimes, aligned with `rows`."""

    fit: CriticalBatchFit | None
    """None where fewer than three batch sizes met the goal."""

    tuned: tuple[TunedPoint, ...]
    """The best metaparameters, for the rows that met the goal."""

    @property
    def best(self) -> StepsToResult | None:
        """The row with the fewest steps; the smallest batch size of several."""
        return min((row for row in self.rows if row.is_reached), key=lambda row: row.steps or 0, default=None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before trusting the numbers, a sentence each."""
        found = [self.fit.warning if self.fit else _no_fit(self.rows), _uneven(self.rows), _edges(self.rows)]
        return tuple(warning for warning in found if warning)


def summarise(results: Iterable[StudyResult], goal: Goal, num_trials: int | None = None) -> WorkloadSummary:
    """Return the summary of one workload from its studies, over the first `num_trials` complete trials of each.

    InputError if there is no study, if two have one batch size, or if they are of different workloads.

    >>> from batchlab.analysis import example_workload
    >>> summary = summarise(example_workload(), Goal.read("val/classification_error < 0.1"))
    >>> [(row.batch_size, row.steps) for row in summary.rows]
    [(16, 800), (64, 200), (256, 100)]
    """
    results = sorted(results, key=lambda result: result.batch_size)
    _check_one_workload(results)
    rows = tuple(steps_to_result(result, goal, num_trials) for result in results)
    return WorkloadSummary(
        workload=results[0].workload,
        goal=goal,
        rows=rows,
        scaling=measure_scaling(rows),
        fit=fit_critical_batch(rows),
        tuned=tuned_points(rows),
    )


def curve_json(summary: WorkloadSummary) -> dict[str, Any]:
    """Return what `batchlab curve --json` prints.

    >>> from batchlab.analysis import example_workload
    >>> summary = summarise(example_workload(), Goal.read("val/classification_error < 0.1"))
    >>> curve_json(summary)["rows"][0]["steps"]
    800
    """
    return {
        "workload": summary.workload,
        "goal": str(summary.goal),
        "rows": [_row_json(row) for row in summary.rows],
        "fit": None if summary.fit is None else _fit_json(summary.fit),
    }


def _row_json(row: StepsToResult) -> dict[str, Any]:
    return {
        "batch_size": row.batch_size,
        "reached": row.is_reached,
        "steps": row.steps,
        "trial_id": row.trial.trial_id if row.trial else None,
        "metaparameters": dict(row.trial.metaparameters) if row.trial else None,
        "complete": row.complete,
        "infeasible": row.infeasible,
        "incomplete": row.incomplete,
        "at_boundary": list(row.at_boundary),
        "ci": [row.interval.low, row.interval.high] if row.interval else None,
    }


def _fit_json(fit: CriticalBatchFit) -> dict[str, Any]:
    return {
        "s_min": fit.s_min,
        "e_min": fit.e_min,
        "b_crit": fit.b_crit,
        "b_crit_ci": list(fit.b_crit_ci),
        "warning": fit.warning,
    }


def _check_one_workload(results: list[StudyResult]) -> None:
    if not results:
        raise InputError("There is no study to summarise. Run a sweep first: batchlab run SPEC")
    workloads = sorted({result.workload for result in results})
    if len(workloads) > 1:
        raise InputError(f"Studies of several workloads cannot share a curve: {', '.join(workloads)}. Name one.")
    sizes = [result.batch_size for result in results]
    for before, after in pairwise(sizes):
        if before == after:
            raise InputError(f"Two studies of {workloads[0]} have batch size {after}. Use one of them.")


def _no_fit(rows: tuple[StepsToResult, ...]) -> str:
    fitted = sum(bool(row.steps) for row in rows)
    return (
        f"The critical batch size needs {MIN_BATCH_SIZES} batch sizes that reach the goal by training; "
        f"{fitted} of {len(rows)} did."
    )


def _uneven(rows: tuple[StepsToResult, ...]) -> str | None:
    numbers = [row.num_trials for row in rows]
    if min(numbers) == max(numbers):
        return None
    return f"Budgets differ: from {count(min(numbers))} to {count(max(numbers))} complete trials for a batch size."


def _edges(rows: tuple[StepsToResult, ...]) -> str | None:
    at_edge = [row for row in rows if row.at_boundary]
    if not at_edge:
        return None
    names = sorted({name for row in at_edge for name in row.at_boundary})
    return (
        f"At batch size {listed(row.batch_size for row in at_edge)} the best point lies at the edge of the search "
        f"range of {', '.join(names)}: a wider range may do better."
    )
