"""The figure of a workload: steps to result against batch size, with its fit and regimes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from batchlab.analysis import Regime, StepsToResult, WorkloadSummary
from batchlab.analysis.answers.headline import Headline
from batchlab.analysis.answers.steps_to_result import measured_steps
from batchlab.analysis.text import listed
from batchlab.plots.answers import answer_label, critical_label, fit_label
from batchlab.plots.draw import draw_sheet
from batchlab.plots.panel import Axis, AxisValue, Panel, Point, Series, Span
from batchlab.plots.regime_spans import regime_spans, unknown_span
from batchlab.plots.scales import MARGIN
from batchlab.plots.sheet import Sheet
from batchlab.plots.steps import (
    BATCH_SIZE,
    perfect_series,
    published_series,
    steps_axes,
    steps_series,
    unreached_series,
)
from batchlab.plots.style import ShownFigure
from batchlab.published.comparison import PublishedComparison, compare_published

_NUM_FITTED = 100


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """One batch size of the curve: a row of the CSV file."""

    batch_size: int
    headline: Headline
    """Which answer `headline_steps`, `low` and `high` are of."""

    headline_steps: float | None
    low: float | None
    high: float | None
    """The 95 % interval; one bound alone means that it is open on the other side."""

    steps: int | None
    """The minimum over the trials."""

    best_of_m: int | None
    best_of_steps: float | None
    confirmed_steps: float | None
    seeds: int | None
    num_trials: int
    end_step: int
    ended_by: str | None
    """Where the goal was not reached: `race` or `budget`."""

    efficiency: float | None
    efficiency_low: float | None
    efficiency_high: float | None
    regime: Regime | None
    """None where the ranges leave it open."""

    perfect_steps: float | None
    fitted_steps: float | None
    published_steps: float | None
    published_ratio: float | None
    """Headline over published steps."""


@dataclass(frozen=True, kw_only=True)
class StepsCurveData:
    """Everything the figure shows, as plain numbers."""

    points: tuple[CurvePoint, ...]
    panel: Panel
    published_elsewhere: dict[int, float]
    """Published steps at batch sizes that were not measured."""

    def table(self) -> list[dict[str, object]]:
        """Return the rows of the CSV file, one for each batch size, measured or only published."""
        empty = dict.fromkeys(field.name for field in fields(CurvePoint))
        others = [
            {**empty, "batch_size": size, "published_steps": steps} for size, steps in self.published_elsewhere.items()
        ]
        return [*(vars(point) for point in self.points), *others]


def steps_curve_data(summary: WorkloadSummary, *, published: bool = False) -> StepsCurveData:
    """Return what the figure of `summary` shows, beside the published points where they are wanted and known."""
    measured = measured_steps(summary.rows, summary.headline)
    beside = compare_published(summary, measured) if published else None
    sizes = {row.batch_size for row in summary.rows}
    elsewhere = {size: steps for size, steps in beside.steps.items() if size not in sizes} if beside else {}
    return StepsCurveData(
        points=_points(summary, measured, beside), panel=_panel(summary, beside), published_elsewhere=elsewhere
    )


def steps_curve_figure(data: StepsCurveData) -> ShownFigure:
    """Return the figure, ready to be saved."""
    return draw_sheet(Sheet(caption="", columns=1, panels=(data.panel,), panel_aspect=1.6, width=6.4))


def _panel(summary: WorkloadSummary, beside: PublishedComparison | None) -> Panel:
    series = tuple(_series(summary, beside))
    x_axis, y_axis = steps_axes(series, f"Steps to {summary.goal}", ticks="numbers", reach=3.0)
    if not summary.has_one_batch_size:
        x_axis = replace(x_axis, label=f"First {BATCH_SIZE[0].lower()}{BATCH_SIZE[1:]}; it changes on the way")
    return Panel(
        title=summary.workload,
        x_axis=x_axis,
        y_axis=y_axis,
        series=series,
        notes=_notes(summary),
        legend=None,
        spans=_spans(summary, x_axis),
        axis_values=_critical(summary),
    )


def _series(summary: WorkloadSummary, beside: PublishedComparison | None) -> Iterator[Series]:
    workload, goal, rows, headline = summary.workload, summary.goal, summary.rows, summary.headline
    answers = steps_series(answer_label(headline, rows), workload, goal, rows, headline)
    yield answers
    if headline != "minimum":
        yield _minima(summary)
    missed = unreached_series(workload, goal, rows)
    if missed:
        yield missed
    if summary.has_one_batch_size and any(point.y for point in answers.points):
        yield perfect_series(answers)
    if summary.fit:
        yield _fitted(summary)
    if beside:
        yield published_series(workload, goal, beside)


def _minima(summary: WorkloadSummary) -> Series:
    return Series(
        label=answer_label("minimum", summary.rows),
        kind="minimum",
        workload=summary.workload,
        quantity=f"steps to {summary.goal}",
        points=tuple(Point(row.batch_size, row.steps or None, num_trials=row.num_trials) for row in summary.rows),
    )


def _fitted(summary: WorkloadSummary) -> Series:
    assert summary.fit is not None
    sizes = np.geomspace(summary.fit.batch_sizes[0], summary.fit.batch_sizes[-1], _NUM_FITTED)
    steps = summary.fit.steps_at(sizes)
    return Series(
        label=fit_label(summary.fit),
        kind="fit",
        workload=summary.workload,
        quantity=f"steps to {summary.goal}",
        points=tuple(Point(float(size), float(step)) for size, step in zip(sizes, steps, strict=True)),
    )


def _critical(summary: WorkloadSummary) -> tuple[AxisValue, ...]:
    fit = summary.fit
    if fit is None:
        return ()
    # A value without bounds is not shown as a place on the axis, unless it is exact.
    is_known = fit.is_exact or not fit.b_crit_ci.is_open
    value = fit.b_crit if is_known else None
    label = critical_label(fit)
    if summary.regimes and summary.regimes.departs:
        label += ", poor fit"
    return (AxisValue(label, value, fit.b_crit_ci.low, fit.b_crit_ci.high, top=2 * fit.s_min),)


def _spans(summary: WorkloadSummary, axis: Axis) -> tuple[Span, ...]:
    """Return the regimes as far as batch sizes were tried: published points may lie far outside."""
    sizes = [row.batch_size for row in summary.rows]
    low, high = max(axis.low, min(sizes) / MARGIN), min(axis.high, max(sizes) * MARGIN)
    if summary.regimes and summary.regimes.has_few_trials:
        return (unknown_span(low, high),)
    return regime_spans(summary.regimes, low, high)


def _notes(summary: WorkloadSummary) -> tuple[str, ...]:
    at_once = [row.batch_size for row in summary.rows if row.start_met]
    return (f"met before the first update at batch size {listed(at_once)}",) if at_once else ()


def _points(
    summary: WorkloadSummary, measured: dict[int, float], beside: PublishedComparison | None
) -> tuple[CurvePoint, ...]:
    anchor = next(iter(measured), None) if summary.has_one_batch_size else None
    perfect = {row.batch_size: measured[anchor] * anchor / row.batch_size for row in summary.rows if anchor is not None}
    return tuple(_point(summary, i, perfect.get(row.batch_size), beside) for i, row in enumerate(summary.rows))


def _point(summary: WorkloadSummary, i: int, perfect: float | None, beside: PublishedComparison | None) -> CurvePoint:
    row, regimes, fit = summary.rows[i], summary.regimes, summary.fit
    estimate = row.estimate(summary.headline)
    efficiency = regimes.efficiencies[i] if regimes else None
    return CurvePoint(
        batch_size=row.batch_size,
        headline=summary.headline,
        headline_steps=estimate.value,
        low=estimate.interval.low if estimate.interval else None,
        high=estimate.interval.high if estimate.interval else None,
        steps=row.steps,
        best_of_m=row.best_of.m if row.best_of else None,
        best_of_steps=row.best_of.steps if row.best_of else None,
        confirmed_steps=row.confirmed.steps if row.confirmed else None,
        seeds=row.confirmed.seeds if row.confirmed else None,
        num_trials=row.num_trials,
        end_step=row.end_step,
        ended_by=row.ended_by,
        efficiency=efficiency.value if efficiency else None,
        efficiency_low=efficiency.low if efficiency else None,
        efficiency_high=efficiency.high if efficiency else None,
        regime=summary.regime_of(row),
        perfect_steps=perfect if row.is_reached else None,
        fitted_steps=fit.s_min + fit.e_min / row.batch_size if fit else None,
        published_steps=_published(row, beside),
        published_ratio=beside.ratios.get(row.batch_size) if beside else None,
    )


def _published(row: StepsToResult, beside: PublishedComparison | None) -> float | None:
    return beside.steps.get(row.batch_size) if beside else None
