"""The figure of a workload: steps to result against batch size, with its fit and regimes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import batchlab.plots.style as style
from batchlab.analysis import CriticalBatchFit, Regime, StepsToResult, WorkloadSummary
from batchlab.analysis.text import count, estimate, significant

_REGIMES: dict[Regime, tuple[str, str]] = {
    "perfect": (style.GREEN, "perfect\nscaling"),
    "diminishing": (style.ORANGE, "diminishing\nreturns"),
    "maximal": (style.PURPLE, "maximal\nparallelism"),
}


@dataclass(frozen=True)
class CurvePoint:
    """One batch size of the curve."""

    batch_size: int
    steps: int | None
    low: int | None
    high: int | None
    is_open: bool
    """Whether the interval has a lower bound only."""

    end_step: int
    num_trials: int
    efficiency: float | None
    regime: Regime | None
    perfect_steps: float | None
    fitted_steps: float | None


@dataclass(frozen=True)
class RegimeSpan:
    """The batch sizes of one regime; its ends lie half-way, on the log axis, to the next regime's."""

    regime: Regime
    left: float
    right: float


@dataclass(frozen=True)
class FitLine:
    """The fitted hyperbola and its critical batch size."""

    s_min: float
    e_min: float
    b_crit: float
    b_low: float | None
    b_high: float | None


@dataclass(frozen=True, kw_only=True)
class StepsCurveData:
    """Everything the figure shows, as plain numbers."""

    workload: str
    goal: str
    points: tuple[CurvePoint, ...]
    spans: tuple[RegimeSpan, ...]
    fit: FitLine | None
    x_limits: tuple[float, float]

    @property
    def drawn(self) -> tuple[CurvePoint, ...]:
        """The points with steps; a goal met before the first update has no place on a log axis."""
        return tuple(point for point in self.points if point.steps)

    def table(self) -> list[dict[str, object]]:
        """Return the rows of the CSV file, one for each batch size."""
        return [vars(point) for point in self.points]


def steps_curve_data(summary: WorkloadSummary) -> StepsCurveData:
    """Return what the figure of `summary` shows."""
    scaling, fit = summary.scaling, summary.fit
    anchor = next((row for row in summary.rows if row.is_reached), None)
    points = tuple(
        _point(row, efficiency, regime, anchor, fit)
        for row, efficiency, regime in zip(summary.rows, scaling.efficiencies, scaling.regimes, strict=True)
    )
    sizes = [point.batch_size for point in points]
    limits = (min(sizes) / 1.5, max(sizes) * 1.5)
    return StepsCurveData(
        workload=summary.workload,
        goal=str(summary.goal),
        points=points,
        spans=_spans(points, limits),
        fit=FitLine(fit.s_min, fit.e_min, fit.b_crit, *fit.b_crit_ci) if fit else None,
        x_limits=limits,
    )


def steps_curve_figure(data: StepsCurveData) -> Figure:
    """Return the figure, ready to be saved."""
    with style.applied():
        figure = style.new_figure(6.4, 4.6)
        draw_steps_curve(figure.add_subplot(), data)
    return figure


def draw_steps_curve(ax: Axes, data: StepsCurveData) -> None:
    """Draw the curve, its intervals, perfect scaling, fit and regimes on `ax`."""
    low, high = _y_limits(data)
    style.set_batch_size_axis(ax, *data.x_limits)
    style.set_steps_axis(ax, low, high, f"Steps to {data.goal}")
    ax.set_title(data.workload, pad=30, parse_math=False)
    _draw_regimes(ax, data.spans)
    handles = [*_draw_points(ax, data), *_draw_intervals(ax, data.drawn), *_draw_perfect(ax, data.drawn)]
    handles += _draw_fit(ax, data) + _draw_unreached(ax, data.points)
    has_unreached = any(point.steps is None for point in data.points)
    ax.legend(handles=handles, loc="upper right", bbox_to_anchor=(1, 0.93 if has_unreached else 1))


def _point(
    row: StepsToResult,
    efficiency: float | None,
    regime: Regime | None,
    anchor: StepsToResult | None,
    fit: CriticalBatchFit | None,
) -> CurvePoint:
    return CurvePoint(
        batch_size=row.batch_size,
        steps=row.steps,
        low=row.interval.low if row.interval else None,
        high=row.interval.high if row.interval else None,
        is_open=row.is_open,
        end_step=row.end_step,
        num_trials=row.num_trials,
        efficiency=efficiency,
        regime=regime,
        perfect_steps=anchor.steps * anchor.batch_size / row.batch_size if anchor and anchor.steps else None,
        fitted_steps=fit.s_min + fit.e_min / row.batch_size if fit else None,
    )


def _spans(points: Sequence[CurvePoint], limits: tuple[float, float]) -> tuple[RegimeSpan, ...]:
    sizes = [point.batch_size for point in points]
    middles = [math.sqrt(a * b) for a, b in pairwise(sizes)]
    edges = [limits[0], *middles, limits[1]]
    spans = []
    for regime, run in groupby(range(len(points)), key=lambda i: points[i].regime):
        members = list(run)
        if regime is not None:
            spans.append(RegimeSpan(regime, edges[members[0]], edges[members[-1] + 1]))
    return tuple(spans)


def _y_limits(data: StepsCurveData) -> tuple[float, float]:
    values = [value for point in data.drawn for value in (point.steps, point.high) if value]
    if not values:
        values = [point.end_step for point in data.points]
    return min(values) / 1.8, max(values) * 1.8


def _draw_regimes(ax: Axes, spans: Sequence[RegimeSpan]) -> None:
    for span in spans:
        colour, label = _REGIMES[span.regime]
        ax.axvspan(span.left, span.right, color=colour, alpha=0.1, linewidth=0, zorder=0)
        ax.text(
            math.sqrt(span.left * span.right),
            1.015,
            label,
            transform=ax.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=7.5,
            linespacing=1.05,
        )


def _draw_points(ax: Axes, data: StepsCurveData) -> list[Line2D]:
    if not data.drawn:
        return []
    sizes, steps = _column(data.drawn, "batch_size"), _column(data.drawn, "steps")
    return ax.plot(sizes, steps, "^-", color=style.BLUE, zorder=4, label=f"measured, {_trials(data.points)}")


def _column(points: Sequence[CurvePoint], name: str) -> np.ndarray:
    """Return one field of all points, NaN where it is None: matplotlib leaves a gap there."""
    return np.array([getattr(point, name) for point in points], dtype=float)


def _trials(points: Sequence[CurvePoint]) -> str:
    fewest, most = (pick(point.num_trials for point in points) for pick in (min, max))
    if most == 1:
        return "one trial"
    return f"best of {count(most)} trials" if fewest == most else f"best of {count(fewest)} to {count(most)} trials"


def _draw_intervals(ax: Axes, points: Sequence[CurvePoint]) -> list[Line2D | Patch]:
    sizes, low, high = (_column(points, name) for name in ("batch_size", "low", "high"))
    ax.fill_between(sizes, low, high, color=style.BLUE, alpha=0.25, linewidth=0)
    ax.vlines(sizes, low, high, color=style.BLUE, alpha=0.6, linewidth=1)
    handles: list[Line2D | Patch] = []
    if np.isfinite(high).any():
        handles.append(Patch(color=style.BLUE, alpha=0.25, linewidth=0, label="95 % interval"))
    is_open = [point for point in points if point.is_open]
    for point in is_open:
        _draw_open_bound(ax, point)
    if is_open:
        arrow: dict[str, Any] = {"marker": r"$\uparrow$", "linestyle": "none", "color": style.BLUE, "markersize": 8}
        handles.append(Line2D([], [], **arrow, label="interval open above"))
    return handles


def _draw_open_bound(ax: Axes, point: CurvePoint) -> None:
    # Of a fixed length: how far the interval reaches is not known.
    ax.annotate(
        "",
        (point.batch_size, point.steps or 1),
        xytext=(0, 26),
        textcoords="offset points",
        arrowprops={"arrowstyle": "<-", "color": style.BLUE, "linewidth": 1, "shrinkA": 0, "shrinkB": 2},
        annotation_clip=False,
    )


def _draw_perfect(ax: Axes, points: Sequence[CurvePoint]) -> list[Line2D]:
    if not points:
        return []
    sizes, steps = _column(points, "batch_size"), _column(points, "perfect_steps")
    return ax.plot(sizes, steps, "--", color=style.INK, linewidth=1, zorder=3, label="perfect scaling")


def _draw_fit(ax: Axes, data: StepsCurveData) -> list[Line2D]:
    fit = data.fit
    if fit is None:
        return []
    sizes = np.geomspace(data.drawn[0].batch_size, data.drawn[-1].batch_size, 200)
    label = f"fit, {significant(fit.s_min)} + {significant(fit.e_min)} / batch size"
    handles = ax.plot(sizes, fit.s_min + fit.e_min / sizes, color=style.VERMILION, zorder=2, label=label)
    return [*handles, _draw_critical(ax, fit, data.x_limits)]


def _draw_critical(ax: Axes, fit: FitLine, limits: tuple[float, float]) -> Line2D:
    bottom = ax.get_ylim()[0]
    look: dict[str, Any] = {"color": style.VERMILION, "linestyle": ":", "linewidth": 1.2}
    if limits[0] < fit.b_crit < limits[1]:
        ax.plot([fit.b_crit, fit.b_crit], [bottom, 2 * fit.s_min], **look)
    # The bar on the axis is the interval; an open side runs to the end of the axis.
    low, high = fit.b_low or limits[0], fit.b_high or limits[1]
    is_bounded = fit.b_low is not None or fit.b_high is not None
    if is_bounded and low < limits[1] and high > limits[0]:
        bar = [max(low, limits[0]), min(high, limits[1])]
        look_of_bar: dict[str, Any] = {"color": style.VERMILION, "alpha": 0.6, "linewidth": 6, "solid_capstyle": "butt"}
        ax.plot(bar, [bottom, bottom], **look_of_bar, clip_on=False, zorder=5)
    return Line2D([], [], **look, label=f"critical batch size {estimate(fit.b_crit, fit.b_low, fit.b_high)}")


def _draw_unreached(ax: Axes, points: Sequence[CurvePoint]) -> list[Line2D]:
    unreached = [point for point in points if point.steps is None]
    if not unreached:
        return []
    return ax.plot(
        [point.batch_size for point in unreached],
        [0.97] * len(unreached),
        "x",
        transform=ax.get_xaxis_transform(),
        color=style.INK,
        label=f"not reached within {_end_text(unreached)} steps",
    )


def _end_text(points: Sequence[CurvePoint]) -> str:
    fewest, most = (pick(point.end_step for point in points) for pick in (min, max))
    return count(most) if fewest == most else f"{count(fewest)} to {count(most)}"
