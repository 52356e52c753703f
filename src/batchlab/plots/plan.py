"""The figure of a training plan: time to the goal against batch size, and time against cost for several workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from batchlab.analysis import PlanRow, TrainingPlan
from batchlab.analysis.interval import NO_INTERVAL
from batchlab.analysis.text import count, listed
from batchlab.plots.answers import INTERVAL
from batchlab.plots.draw import draw_sheet
from batchlab.plots.panel import Kind, Panel, Point, Series
from batchlab.plots.scales import log_axis
from batchlab.plots.sheet import Sheet
from batchlab.plots.steps import BATCH_SIZE
from batchlab.plots.style import ShownFigure
from batchlab.plots.trained_sweep import evenly

MOST_CURVES = 6
"""Numbers of workers that are told apart at a glance."""

EXTRAPOLATED = "extrapolated: beyond what was measured"
PICKED = "fastest, cheapest, balanced"
_SECONDS = "Seconds to the goal"


def plan_data(plan: TrainingPlan) -> Sheet:
    """Return time against batch size, a curve for each number of workers, and the front of time and cost.

    A front of one row, the fastest and the cheapest, is no trade-off to draw.
    """
    panels = [_time_panel(plan)]
    if sum(row.is_pareto for row in plan.rows) > 1:
        panels.append(_cost_panel(plan))
    aspect, width = (1.6, 6.4) if len(panels) == 1 else (4 / 3, 9.0)
    return Sheet(caption=_caption(plan), columns=len(panels), panels=tuple(panels), panel_aspect=aspect, width=width)


def plan_figure(sheet: Sheet) -> ShownFigure:
    """Return the figure, ready to be saved."""
    return draw_sheet(sheet)


def _time_panel(plan: TrainingPlan) -> Panel:
    counts = evenly(sorted({row.workers for row in plan.rows}), MOST_CURVES)
    rows = [row for row in plan.rows if row.workers in counts]
    points = [_point(row) for row in rows]
    bounds = [each for point in points for each in (point.low, point.high)] if len(counts) == 1 else []
    return Panel(
        title=plan.workload or "",
        x_axis=log_axis(BATCH_SIZE, "log2", [point.x for point in points], ticks="numbers"),
        y_axis=log_axis(_SECONDS, "log10", [point.y for point in points], bounds, ticks="numbers", reach=3.0),
        series=(*_curves(plan, rows, counts), *_marks(plan, rows)),
        is_ordered=len(counts) > 1,
        legend="best" if len(counts) > 1 else None,
    )


def _curves(plan: TrainingPlan, rows: Sequence[PlanRow], counts: Sequence[int]) -> Iterator[Series]:
    for workers in counts:
        own = sorted((row for row in rows if row.workers == workers), key=lambda row: row.batch_size)
        yield Series(
            label="1 worker" if workers == 1 else f"{count(workers)} workers",
            kind="measured",
            workload=plan.workload or "",
            quantity=f"seconds to {plan.goal or 'the goal'} on {workers} workers",
            points=tuple(_point(row) for row in own),
            bars=INTERVAL,
        )


def _marks(plan: TrainingPlan, rows: Sequence[PlanRow]) -> Iterator[Series]:
    beyond = tuple(_point(row) for row in rows if row.is_extrapolated)
    if beyond:
        yield _series(plan, EXTRAPOLATED, "extrapolated", beyond)
    picks = tuple(_point(row) for row in _picks(plan) if row in rows)
    if picks:
        yield _series(plan, PICKED, "pick", picks)


def _cost_panel(plan: TrainingPlan) -> Panel:
    front = sorted((row for row in plan.rows if row.is_pareto), key=lambda row: row.cost.value)
    points = [Point(row.cost.value, row.seconds.value) for row in front]
    beyond = tuple(Point(row.cost.value, row.seconds.value) for row in front if row.is_extrapolated)
    picks = tuple(Point(row.cost.value, row.seconds.value) for row in _picks(plan))
    unit = "worker-hours" if plan.price is None else "price"
    found = [_series(plan, "front: none is faster and cheaper", "measured", tuple(points))]
    if beyond:
        found.append(_series(plan, EXTRAPOLATED, "extrapolated", beyond))
    return Panel(
        title="Time against cost",
        x_axis=log_axis(f"Cost ({unit})", "log10", [point.x for point in points], ticks="numbers"),
        y_axis=log_axis(_SECONDS, "log10", [point.y for point in points], ticks="numbers"),
        series=(*found, _series(plan, PICKED, "pick", picks)),
        legend=None,
    )


def _picks(plan: TrainingPlan) -> list[PlanRow]:
    """Return the rows that are marked, each once: one may be all three."""
    return list(dict.fromkeys((plan.fastest, plan.cheapest, plan.balanced)))


def _series(plan: TrainingPlan, label: str, kind: Kind, points: tuple[Point, ...]) -> Series:
    return Series(label=label, kind=kind, workload=plan.workload or "", quantity="seconds to the goal", points=points)


def _point(row: PlanRow) -> Point:
    interval = row.seconds.interval or NO_INTERVAL
    return Point(row.batch_size, row.seconds.value, interval.low, interval.high)


def _caption(plan: TrainingPlan) -> str:
    where = f"step times measured on {plan.machine}" if plan.machine else "given step times"
    found = [f"Steps to {plan.goal or 'the goal'} times {where}. Updates alone: no evaluation, no start."]
    if plan.curve.tuned and any(plan.is_fitted(row) for row in plan.rows):
        found.append(f"Steps at batch size {listed(sorted(plan.curve.tuned))} are answers, the others a fitted curve.")
    if any(row.is_extrapolated for row in plan.rows):
        found.append("Circles are extrapolated.")
    if len({row.workers for row in plan.rows}) > 1:
        found.append("95 % intervals are in the CSV file.")
    elif any((row.seconds.interval or NO_INTERVAL) == NO_INTERVAL for row in plan.rows):
        found.append("Points without bars have no 95 % interval.")
    return " ".join(found)
