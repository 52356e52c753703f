"""Curves of steps to result against batch size, as series of a panel."""

from __future__ import annotations

from collections.abc import Sequence

from batchlab.analysis import Bounds, StepsToResult
from batchlab.core.goal import Goal
from batchlab.plots.panel import Axis, Point, Series
from batchlab.plots.scales import log_axis


def steps_series(label: str, workload: str, goal: Goal, rows: Sequence[StepsToResult]) -> Series:
    """Return a measured curve of steps to result; batch sizes that missed the goal have no y."""
    points = tuple(
        steps_point(row, row.steps, (row.interval.low, row.interval.high) if row.interval else None) for row in rows
    )
    return Series(label=label, kind="measured", workload=workload, quantity=f"steps to {goal}", points=points)


def steps_point(row: StepsToResult, y: float | None, interval: Bounds | None) -> Point:
    """Return the mark of a batch size: its steps, or what was made of them."""
    low, high = interval or (None, None)
    return Point(row.batch_size, y, low, high, row.num_trials)


def perfect_series(anchor: Series, base: int | None = None) -> Series:
    """Return perfect scaling over the batch sizes of `anchor`, from its first point or from its point at `base`.

    `anchor` has a point above zero: a goal met before the first update anchors nothing.
    """
    points = [point for point in anchor.points if point.y]
    start = next(point for point in points if base in (None, point.x))
    return Series(
        label="perfect scaling",
        kind="perfect scaling",
        workload=anchor.workload,
        quantity=anchor.quantity,
        points=tuple(Point(point.x, (start.y or 0) * start.x / point.x) for point in points),
    )


def steps_axes(series: Sequence[Series], y_label: str) -> tuple[Axis, Axis]:
    """Return the axes of a panel of curves: all marks are on it, and as much of guides and intervals as fits."""
    marks = [point for one in series if one.kind in ("measured", "published") for point in one.points]
    guides = [point.y for one in series for point in one.points] + [point.high for point in marks]
    x_axis = log_axis("Batch size", "log2", [point.x for point in marks])
    return x_axis, log_axis(y_label, "log2", [point.y for point in marks], guides)
