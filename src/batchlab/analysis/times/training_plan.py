"""A training plan: time and cost to a goal for every batch size and number of workers, and which of them to take.

Steps to the goal times the seconds of a step: T(B, K) = S(B) t(B / K, K), and cost = price * K * T. With the hyperbola
and a line, T of one worker is least at B* = sqrt(B_crit B_half), where it is (sqrt(S_min t0) + sqrt(E_min / tau))^2.
What is counted is updates: no evaluation, no start, no reading of data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from batchlab.analysis.answers.tuning import TunedPoint
from batchlab.analysis.interval import interval_json
from batchlab.analysis.times.deadline import BestByDeadline
from batchlab.analysis.times.expected import Expected
from batchlab.analysis.times.expected_steps import StepsCurve
from batchlab.analysis.times.throughput import Throughput
from batchlab.core.goal import Goal
from batchlab.errors import InputError

REACH = 4
"""How far beyond the best batch size, and beyond B_crit, rows are shown."""

FAR = 64
"""The same where a step takes no longer for more examples, and no batch size is the best."""

HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class PlanRow:
    """One batch size on some workers."""

    batch_size: int
    workers: int
    steps: Expected
    step_seconds: Expected
    seconds: Expected
    """To the goal."""

    cost: Expected
    """Price times workers times hours; worker-hours without a price."""

    is_pareto: bool = False
    """Whether no other row is as fast and as cheap, and better in one of the two."""

    @property
    def is_extrapolated(self) -> bool:
        """Whether its steps or its step time lie beyond what was measured."""
        return self.seconds.is_extrapolated


@dataclass(frozen=True)
class ClosedForm:
    """The best batch size of one worker by the formula."""

    batch_size: float
    seconds: float
    is_extrapolated: bool = False
    """Whether it lies beyond what was measured."""


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """What to train with, and what it will take."""

    rows: tuple[PlanRow, ...]
    """By workers and batch size."""

    fastest: PlanRow
    cheapest: PlanRow
    balanced: PlanRow
    """The least seconds times cost."""

    closed_form: ClosedForm | None
    """None without a fit of the steps, where a step takes no longer for more examples, and where the steps say nothing
    of its batch size."""

    curve: StepsCurve
    throughput: Throughput
    price: float | None = None
    """Of a worker for an hour; None where cost is counted in worker-hours."""

    workload: str | None = None
    goal: Goal | None = None
    tuned: tuple[TunedPoint, ...] = ()
    deadline: float | None = None
    """Seconds, where a best value in time was asked for."""

    best_by_deadline: BestByDeadline | None = None
    notes: tuple[str, ...] = ()
    """What to know before trusting it, a sentence each."""

    @property
    def machine(self) -> str | None:
        """Where step times were measured; None where they were given."""
        return self.throughput.machine or None

    def is_fitted(self, row: PlanRow) -> bool:
        """Whether the steps of a row are those of the fitted curve, and not an answer of their batch size."""
        return bool(self.curve.reached) and row.batch_size not in self.curve.tuned

    def nearest_tuned(self, batch_size: int) -> TunedPoint | None:
        """Return the metaparameters that were found at this batch size, or at the nearest one by ratio."""
        return min(self.tuned, key=lambda point: abs(math.log(point.batch_size / batch_size)), default=None)


def make_plan(
    curve: StepsCurve, throughput: Throughput, max_workers: int = 1, price: float | None = None
) -> TrainingPlan:
    """Return time and cost of every batch size (measured ones, powers of two, the best) on 1 to `max_workers` workers.

    No batch is larger than the training set. InputError where nothing is known of any batch size.

    >>> from batchlab.analysis import ThroughputFit
    >>> line = Throughput(ThroughputFit(t0=0.0186, seconds_per_example=1 / 1381))
    >>> plan = make_plan(StepsCurve(s_min=100, e_min=51_200), line)
    >>> plan.fastest.batch_size, round(plan.fastest.seconds.value, 2)
    (115, 55.54)
    >>> round(plan.closed_form.batch_size, 2), round(plan.closed_form.seconds, 4)
    (114.68, 55.5429)
    """
    if throughput.train_examples is not None:
        curve = replace(curve, largest=min(curve.largest, throughput.train_examples))
    counts = worker_counts(max_workers, throughput)
    sizes = {workers: sorted(set(_batch_sizes(curve, throughput, workers, max_workers))) for workers in counts}
    found = [
        row for workers in counts for size in sizes[workers] if (row := _row(curve, throughput, size, workers, price))
    ]
    if not found:
        raise InputError(
            "No batch size is left to plan with: each that met the goal is smaller than the number of workers."
        )
    rows = mark_pareto(found)
    return TrainingPlan(
        rows=rows,
        fastest=min(rows, key=lambda row: (row.seconds.value, row.cost.value)),
        cheapest=min(rows, key=lambda row: (row.cost.value, row.seconds.value)),
        balanced=min(rows, key=lambda row: row.seconds.value * row.cost.value),
        closed_form=_closed_form(curve, throughput),
        curve=curve,
        throughput=throughput,
        price=price,
    )


def mark_pareto(rows: Sequence[PlanRow]) -> tuple[PlanRow, ...]:
    """Return the rows in their order, with the front marked: nobody else is as fast and as cheap, and better in one."""
    front, cheapest = set[tuple[float, float]](), math.inf
    for seconds, cost in sorted({(row.seconds.value, row.cost.value) for row in rows}):
        if cost < cheapest:
            front.add((seconds, cost))
            cheapest = cost
    return tuple(replace(row, is_pareto=(row.seconds.value, row.cost.value) in front) for row in rows)


def worker_counts(max_workers: int, throughput: Throughput) -> list[int]:
    """Return the powers of two up to a number of workers, that number, and what was measured below it.

    >>> from batchlab.analysis import ThroughputFit
    >>> worker_counts(12, Throughput(ThroughputFit(t0=0.1, seconds_per_example=0.1)))
    [1, 2, 4, 8, 12]
    """
    powers = [2**k for k in range(max_workers.bit_length())]
    return sorted({count for count in (*powers, max_workers, *throughput.planned_workers) if count <= max_workers})


def _row(
    curve: StepsCurve, throughput: Throughput, batch_size: int, workers: int, price: float | None
) -> PlanRow | None:
    steps = curve.at(batch_size)
    if steps is None:
        return None
    each = throughput.step_seconds(batch_size, workers)
    seconds = steps.times(each)
    return PlanRow(
        batch_size=batch_size,
        workers=workers,
        steps=steps,
        step_seconds=each,
        seconds=seconds,
        cost=seconds.scaled((1.0 if price is None else price) * workers / HOUR),
    )


def _batch_sizes(curve: StepsCurve, throughput: Throughput, workers: int, max_workers: int) -> Iterator[int]:
    """Yield the batch sizes to look at on some workers, each of which has an example at least."""
    known = [*curve.reached, *throughput.batch_sizes]
    yield from (size for size in known if size >= workers)
    bests = [_best_size(curve, throughput, count) for count in (1, workers, max_workers)]
    if (best := bests[1]) is not None:
        yield from _whole(best, workers, curve, throughput)
    top = _top([*known, *(REACH * each for each in bests if each is not None)], curve)
    low = max(workers, min(curve.reached, default=1))
    yield from (2**k for k in range(top.bit_length()) if low <= 2**k <= top)


def _top(wanted: Iterable[float], curve: StepsCurve) -> int:
    """Return the largest batch size to be shown."""
    b_crit = curve.b_crit
    reach = max(wanted, default=FAR * b_crit if b_crit else 1.0)
    far = max(reach, REACH * b_crit if b_crit else 1.0)
    return math.floor(min(far, curve.largest, 2.0**62))


def _best_size(curve: StepsCurve, throughput: Throughput, workers: int) -> float | None:
    """Return the best batch size on some workers by the formula; None where there is none."""
    b_crit, line = curve.b_crit, throughput.fit
    if b_crit is None or line.seconds_per_example == 0:
        return None
    overhead = line.seconds_at(0, workers)
    return math.sqrt(b_crit * workers * overhead / line.seconds_per_example)


def _whole(best: float, workers: int, curve: StepsCurve, throughput: Throughput) -> Iterator[int]:
    """Yield the better one of the two batch sizes beside the best that give every worker the same whole share."""
    low = math.ceil(max(curve.smallest, workers) / workers)
    high = max(low, math.floor(min(curve.largest, 2.0**62) / workers))
    shares = {min(max(share, low), high) for share in (math.floor(best / workers), math.ceil(best / workers))}
    fit = throughput.fit

    def seconds(share: int) -> float:
        return (curve.fitted(share * workers) or math.inf) * fit.seconds_at(share, workers)

    yield min(sorted(shares), key=seconds) * workers


def _closed_form(curve: StepsCurve, throughput: Throughput) -> ClosedForm | None:
    best, line = _best_size(curve, throughput, 1), throughput.fit
    if best is None or curve.s_min is None or curve.e_min is None or not curve.smallest <= best <= curve.largest:
        return None
    root = math.sqrt(curve.s_min * line.t0) + math.sqrt(curve.e_min * line.seconds_per_example)
    return ClosedForm(best, root**2, curve.is_beyond(best) or throughput.is_beyond(best))


def plan_json(plan: TrainingPlan) -> dict[str, Any]:
    """Return what `batchlab plan --json` prints.

    >>> from batchlab.analysis import ThroughputFit
    >>> line = Throughput(ThroughputFit(t0=0.0186, seconds_per_example=1 / 1381))
    >>> plan_json(make_plan(StepsCurve(s_min=100, e_min=51_200), line))["fastest"]["batch_size"]
    115
    """
    best, closed = plan.best_by_deadline, plan.closed_form
    return {
        "workload": plan.workload,
        "goal": None if plan.goal is None else str(plan.goal),
        "machine": plan.machine,
        "cost_unit": "worker-hours" if plan.price is None else "price",
        "fastest": _row_json(plan, plan.fastest),
        "cheapest": _row_json(plan, plan.cheapest),
        "balanced": _row_json(plan, plan.balanced),
        "best_by_deadline": None if best is None else _deadline_json(best),
        "closed_form": None if closed is None else _closed_json(closed),
        "rows": [_row_json(plan, row) for row in plan.rows],
        "notes": list(plan.notes),
    }


def _closed_json(closed: ClosedForm) -> dict[str, Any]:
    return {"batch_size": closed.batch_size, "seconds": closed.seconds, "extrapolated": closed.is_extrapolated}


def _row_json(plan: TrainingPlan, row: PlanRow) -> dict[str, Any]:
    return {
        "batch_size": row.batch_size,
        "workers": row.workers,
        "steps": row.steps.value,
        "steps_ci": interval_json(row.steps.interval),
        "step_seconds": row.step_seconds.value,
        "step_seconds_ci": interval_json(row.step_seconds.interval),
        "seconds": row.seconds.value,
        "seconds_ci": interval_json(row.seconds.interval),
        "cost": row.cost.value,
        "cost_ci": interval_json(row.cost.interval),
        "pareto": row.is_pareto,
        "extrapolated": row.is_extrapolated,
        "fitted": plan.is_fitted(row),
    }


def _deadline_json(best: BestByDeadline) -> dict[str, Any]:
    return {
        "value": best.value,
        "batch_size": best.batch_size,
        "workers": best.workers,
        "metaparameters": dict(best.trial.metaparameters),
        "trial_id": best.trial.trial_id,
        "step": best.step,
        "seconds": best.seconds.value,
        "seconds_ci": interval_json(best.seconds.interval),
        "trials": best.num_trials,
        "extrapolated": best.seconds.is_extrapolated,
        "not_trained_that_long": sorted({*best.raced, *best.spent}),
    }
