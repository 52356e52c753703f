"""The summary of a workload: everything that its table, its figures and its report say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from batchlab.analysis.answers.best_of import BestOf
from batchlab.analysis.answers.confirmed import ConfirmedSteps
from batchlab.analysis.answers.headline import Headline, choose_headline
from batchlab.analysis.answers.steps_to_result import StepsToResult, steps_to_result
from batchlab.analysis.answers.tuning import TunedPoint, tuned_points
from batchlab.analysis.curve.critical_batch import MIN_BATCH_SIZES, CriticalBatchFit, fit_critical_batch
from batchlab.analysis.curve.regime_end import RegimeEnd
from batchlab.analysis.curve.regimes import Regime, Regimes, find_regimes
from batchlab.analysis.interval import interval_json
from batchlab.analysis.text import count, listed, met_untrained
from batchlab.core.goal import Goal
from batchlab.core.protocol import Protocol
from batchlab.core.result import StudyResult
from batchlab.errors import InputError


@dataclass(frozen=True, kw_only=True)
class WorkloadSummary:
    """Steps to result of one workload at every batch size, and what follows from them."""

    workload: str
    goal: Goal
    protocol: Protocol
    """That of the studies; a race factor or budget in which they differ is None."""

    headline: Headline
    """Which of the three answers stands first."""

    rows: tuple[StepsToResult, ...]
    """One for each batch size, ascending."""

    fit: CriticalBatchFit | None
    """None where fewer than three batch sizes met the goal."""

    regimes: Regimes | None
    """None where too few batch sizes met the goal."""

    tuned: tuple[TunedPoint, ...]
    """The best metaparameters, for the rows that met the goal by training."""

    has_one_batch_size: bool = True
    """Whether every update of a study had its batch size: a curve over batch sizes that change has no hyperbola."""

    has_whole_data: bool = True
    """Whether the workload was trained on all of its dataset, so that its name tells what it is."""

    @property
    def is_confirmed(self) -> bool:
        """Whether every batch size that met the goal has a confirmed answer."""
        return self.headline == "confirmed"

    @property
    def is_exact(self) -> bool:
        """Whether there is no chance in any row (closed form), and none was read late."""
        return all(row.is_exact for row in self.rows)

    @property
    def best(self) -> StepsToResult | None:
        """The row with the fewest steps by the headline's answer; the smallest batch size of several."""
        reached = [row for row in self.rows if row.is_reached]
        return min(reached, key=lambda row: row.estimate(self.headline).value or 0, default=None)

    def regime_of(self, row: StepsToResult) -> Regime | None:
        """Return the regime of a row; None where it is not known, or the goal was not met by training."""
        return self.regimes.regime_of(row.batch_size) if self.regimes and row.steps else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before trusting the numbers, a sentence each."""
        found = [
            _start_met(self.rows, self.goal),
            self.fit.warning if self.fit else self._no_fit,
            _uneven(self.rows),
            *_unreached(self.rows),
            _stuck(self.rows),
            _diverged_seeds(self.rows),
            _edges(self.tuned),
        ]
        return tuple(warning for warning in found if warning)

    @property
    def _no_fit(self) -> str:
        if not self.has_one_batch_size:
            return "The batch size changes on the way, and each row is named by its first: no curve is fitted to them."
        fitted = sum(bool(row.steps) for row in self.rows)
        return (
            f"The critical batch size needs {MIN_BATCH_SIZES} batch sizes that reach the goal by training; "
            f"{fitted} of {len(self.rows)} did."
        )


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
    headline = choose_headline(rows)
    has_one = all(result.has_one_batch_size for result in results)
    fit = fit_critical_batch(rows) if has_one else None
    return WorkloadSummary(
        workload=results[0].workload,
        goal=goal,
        protocol=_common_protocol([result.protocol for result in results]),
        headline=headline,
        rows=rows,
        fit=fit,
        regimes=find_regimes(rows, fit),
        tuned=tuned_points(rows, headline),
        has_one_batch_size=has_one,
        has_whole_data=all(result.has_whole_data for result in results),
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
        "headline": summary.headline,
        "protocol": {
            "kind": summary.protocol.kind,
            "race_factor": summary.protocol.race_factor,
            "confirmed": summary.is_confirmed,
        },
        "rows": [_row_json(row) for row in summary.rows],
        "fit": None if summary.fit is None else _fit_json(summary.fit),
        "regimes": None if summary.regimes is None else _regimes_json(summary.regimes),
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
        "stuck": row.stuck,
        "at_boundary": list(row.at_boundary),
        "best_of": None if row.best_of is None else _best_of_json(row.best_of),
        "confirmed": None if row.confirmed is None else _confirmed_json(row.confirmed),
    }


def _best_of_json(answer: BestOf) -> dict[str, Any]:
    return {"m": answer.m, "steps": answer.steps, "ci": interval_json(answer.interval)}


def _confirmed_json(answer: ConfirmedSteps) -> dict[str, Any]:
    return {
        "steps": answer.steps,
        "ci": interval_json(answer.interval),
        "seeds": answer.seeds,
        "metaparameters": dict(answer.trial.metaparameters),
    }


def _fit_json(fit: CriticalBatchFit) -> dict[str, Any]:
    return {
        "s_min": fit.s_min,
        "e_min": fit.e_min,
        "b_crit": fit.b_crit,
        "b_crit_ci": interval_json(fit.b_crit_ci),
        "contradicted_by": list(fit.contradicted_by),
        "warning": fit.warning,
    }


def _regimes_json(regimes: Regimes) -> dict[str, Any]:
    return {
        "from": regimes.source,
        "perfect_up_to": _end_json(regimes.perfect_up_to),
        "maximal_from": _end_json(regimes.maximal_from),
    }


def _end_json(end: RegimeEnd) -> dict[str, Any]:
    return {"value": end.value, "range": [end.low, end.high]}


def _common_protocol(protocols: Sequence[Protocol]) -> Protocol:
    first = protocols[0]
    differ = {
        name: None for name in ("race_factor", "max_steps") if len({getattr(other, name) for other in protocols}) > 1
    }
    kinds = [kind for kind in ("race", "full", "imported") if any(other.kind == kind for other in protocols)]
    return first.model_copy(update={"kind": kinds[0], **differ})


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


def _uneven(rows: tuple[StepsToResult, ...]) -> str | None:
    numbers = [row.num_trials for row in rows]
    if min(numbers) == max(numbers):
        return None
    return f"Budgets differ: from {count(min(numbers))} to {count(max(numbers))} complete trials for a batch size."


def _edges(tuned: tuple[TunedPoint, ...]) -> str | None:
    at_edge = [point for point in tuned if point.at_boundary]
    if not at_edge:
        return None
    names = sorted({name for point in at_edge for name in point.at_boundary})
    return (
        f"At batch size {listed(point.batch_size for point in at_edge)} the best point lies at the edge of what was "
        f"tried of {', '.join(names)}: a wider range may do better."
    )


def _diverged_seeds(rows: tuple[StepsToResult, ...]) -> str | None:
    found = [(row.batch_size, row.confirmed) for row in rows if row.confirmed and row.confirmed.num_diverged]
    if not found:
        return None
    each = ", ".join(f"{made.num_diverged} of {made.seeds} at batch size {count(size)}" for size, made in found)
    return f"Fresh seeds of the best point diverged: {each}. A smaller learning rate may be the safer one."


def _start_met(rows: tuple[StepsToResult, ...], goal: Goal) -> str | None:
    met = [row.batch_size for row in rows if row.start_met]
    if not met:
        return None
    return met_untrained(met, goal)


def _unreached(rows: tuple[StepsToResult, ...]) -> list[str]:
    raced = [row for row in rows if row.ended_by == "race"]
    spent = [row for row in rows if row.ended_by == "budget"]
    found = []
    if raced:
        found.append(
            f"{_not_reached(raced)} before the race ended at step {_end_steps(raced)}: the race was for another goal, "
            'or its winner is not among these trials. protocol = "full" would train on.'
        )
    if spent:
        found.append(f"{_not_reached(spent)} within the budget of {_end_steps(spent)} steps.")
    if diverged := [row.batch_size for row in rows if row.ended_by == "divergence"]:
        found.append(f"At batch size {listed(diverged)} no trial completed: nothing is known of its steps.")
    return found


def _not_reached(rows: Sequence[StepsToResult]) -> str:
    return f"At batch size {listed(row.batch_size for row in rows)} the goal was not reached"


def _end_steps(rows: Sequence[StepsToResult]) -> str:
    least, most = (pick(row.end_step for row in rows) for pick in (min, max))
    return count(least) if least == most else f"{count(least)} to {count(most)}"


def _stuck(rows: tuple[StepsToResult, ...]) -> str | None:
    stuck = [row for row in rows if row.stuck]
    if not stuck:
        return None
    is_everywhere = len(stuck) == len(rows) > 2
    where = "every batch size" if is_everywhere else f"batch size {listed(row.batch_size for row in stuck)}"
    return (
        f"Stuck at chance, though not diverged: {count(sum(row.stuck for row in stuck))} of "
        f"{count(sum(row.complete for row in stuck))} complete trials at {where}."
    )
