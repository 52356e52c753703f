"""Figures 1 to 6: steps to result against batch size, as they are or relative to one batch size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from batchlab.analysis import StepsToResult, normalise_steps, steps_to_result
from batchlab.analysis.text import count
from batchlab.errors import InputError
from batchlab.plots.panel import Panel, Point, Series
from batchlab.plots.paper.lines import MINIMUM, PUBLISHED, Line, Results, studies_of
from batchlab.plots.steps import perfect_series, steps_axes, steps_series
from batchlab.published.comparison import is_comparable
from batchlab.published.points import published_curve

_Curves = list[tuple[Line, list[StepsToResult]]]


@dataclass(frozen=True, kw_only=True)
class StepsPanel:
    """One panel of Figures 1 to 6."""

    title: str
    lines: tuple[Line, ...]
    normalise_at: int | None = None
    """The batch size to whose steps the others are relative; a lab without it gets the smallest one it can."""

    perfect_of: str | None = None
    """The line whose first point anchors perfect scaling; None for no such guide."""

    is_ordered: bool = False

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The workloads and metrics it is made of."""
        return [(line.workload, line.goal.metric) for line in self.lines]

    def data(self, name: str, results: Results, published: bool) -> Panel:
        """Return what the panel shows of a lab."""
        curves, notes = _curves(self.lines, results)
        base = None
        if self.normalise_at is not None and curves:
            base = _base(curves, self.normalise_at)
            if base is None:
                notes.append("the curves have no batch size in common at which their goals were met")
                curves = []
        series = [_measured(line, rows, base) for line, rows in curves]
        if self.perfect_of is not None:
            series += _perfect(series, self.perfect_of, base)
        if published:
            comparable = [line for line, _ in curves if all(map(is_comparable, results(line.workload) or ()))]
            series += [one for line in comparable for one in _published(line, base)]
        return _panel(self, name, series, base, notes)


def _curves(lines: Sequence[Line], results: Results) -> tuple[_Curves, list[str]]:
    curves: _Curves = []
    notes: list[str] = []
    for line in lines:
        try:
            curves.append((line, _reached_rows(results, line)))
        except InputError as error:
            notes.append(str(error))
    return curves, list(dict.fromkeys(notes))


def _reached_rows(results: Results, line: Line) -> list[StepsToResult]:
    """Return steps to result at every batch size; InputError, fit for a panel, where no one met the goal."""
    studies = studies_of(results, line.workload, line.goal.metric)
    rows = [steps_to_result(study, line.goal, line.num_trials) for study in studies]
    if not any(row.is_reached for row in rows):
        raise InputError(f"{line.workload} did not reach {line.goal}")
    return rows


def _base(curves: _Curves, wanted: int) -> int | None:
    reached = [{row.batch_size for row in rows if row.steps} for _, rows in curves]
    common = set.intersection(*reached)
    return wanted if wanted in common else min(common, default=None)


def _measured(line: Line, rows: Sequence[StepsToResult], base: int | None) -> Series:
    if base is None:
        return replace(steps_series(line.label, line.workload, line.goal, rows), legend=MINIMUM)
    ratios = {point.batch_size: point.ratio for point in normalise_steps(rows, base)}
    points = tuple(Point(row.batch_size, ratios.get(row.batch_size), num_trials=row.num_trials) for row in rows)
    return Series(
        label=line.label, kind="measured", workload=line.workload, quantity=_relative(line, base), points=points
    )


def _perfect(measured: Sequence[Series], label: str, base: int | None) -> list[Series]:
    able = [series for series in measured if any(point.y for point in series.points)]
    anchors = [series for series in able if series.label == label] or able[:1]
    return [perfect_series(anchor, base) for anchor in anchors]


def _published(line: Line, base: int | None) -> list[Series]:
    """Return the published points of a curve; none where they are not known on its scale."""
    curve = published_curve(line.workload, line.goal)
    if curve is None or (base is None and curve.relative_to is not None) or base not in (None, *curve.steps):
        return []
    unit = 1.0 if base is None else curve.steps[base]
    points = tuple(Point(size, value / unit) for size, value in curve.steps.items())
    quantity = f"steps to {line.goal}" if base is None else _relative(line, base)
    return [Series(label=PUBLISHED, kind="published", workload=line.workload, quantity=quantity, points=points)]


def _relative(line: Line, base: int) -> str:
    return f"steps to {line.goal} / steps at batch size {base}"


def _panel(spec: StepsPanel, name: str, series: Sequence[Series], base: int | None, notes: Sequence[str]) -> Panel:
    relative_to = base or spec.normalise_at
    label = "Steps to the goal" if relative_to is None else f"Steps / (steps at B = {count(relative_to)})"
    x_axis, y_axis = steps_axes(series, label)
    return Panel(
        name=name,
        title=spec.title,
        x_axis=x_axis,
        y_axis=y_axis,
        series=tuple(series),
        notes=tuple(notes),
        is_ordered=spec.is_ordered,
        legend="upper right" if len(spec.lines) > 1 else None,
    )
