"""Curves of steps to result against batch size, as series of a panel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from batchlab.analysis import StepsToResult
from batchlab.analysis.answers.headline import Headline
from batchlab.core.goal import Goal
from batchlab.plots.answers import INTERVAL
from batchlab.plots.panel import Axis, Point, Series, Ticks
from batchlab.plots.scales import log_axis
from batchlab.published.comparison import PublishedComparison

BATCH_SIZE = "Batch size (examples per update)"


def steps_series(
    label: str, workload: str, goal: Goal, rows: Sequence[StepsToResult], headline: Headline = "minimum"
) -> Series:
    """Return a measured curve of one named answer; batch sizes that missed the goal have no y."""
    return Series(
        label=label,
        kind="measured",
        workload=workload,
        quantity=f"steps to {goal}",
        points=tuple(_point(row, headline) for row in rows),
        bars=INTERVAL,
    )


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


def unreached_series(workload: str, goal: Goal, rows: Iterable[StepsToResult]) -> Series | None:
    """Return the batch sizes that missed the goal, at the steps that they trained; None where there are none."""
    missed = [row for row in rows if row.is_censored]
    if not missed:
        return None
    return Series(
        label="not reached: takes more steps than this",
        kind="not reached",
        workload=workload,
        quantity=f"steps trained without reaching {goal}",
        points=tuple(Point(row.batch_size, row.end_step, num_trials=row.num_trials) for row in missed),
    )


def published_series(workload: str, goal: Goal, found: PublishedComparison) -> Series:
    """Return published points on the scale of the measured ones."""
    return Series(
        label=found.label,
        kind="published",
        workload=workload,
        quantity=f"steps to {goal}",
        points=tuple(Point(size, value) for size, value in found.steps.items()),
    )


def steps_axes(
    series: Sequence[Series], y_label: str, ticks: Ticks = "powers", reach: float = 8.0
) -> tuple[Axis, Axis]:
    """Return the axes of a panel of curves: all marks are on it, and as much of guides and intervals as fits."""
    marks = [point for one in series if one.kind in _MARKS for point in one.points]
    guides = [point.y for one in series for point in one.points] + [point.high for point in marks]
    # Room for the arrows above what was not reached.
    tops = [point.y * 1.5 for one in series if one.kind == "not reached" for point in one.points if point.y]
    x_axis = log_axis(BATCH_SIZE, "log2", [point.x for point in marks], ticks=ticks)
    y_axis = log_axis(y_label, "log2", [*(point.y for point in marks), *tops], guides, ticks=ticks, reach=reach)
    return x_axis, y_axis


_MARKS = ("measured", "minimum", "published", "not reached")


def _point(row: StepsToResult, headline: Headline) -> Point:
    estimate = row.estimate(headline)
    low, high = (estimate.interval.low, estimate.interval.high) if estimate.interval else (None, None)
    return Point(row.batch_size, estimate.value, low, high, row.num_trials)
