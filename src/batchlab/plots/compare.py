"""Several sweeps in one picture: their steps to one goal against batch size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

import batchlab.plots.style as style
from batchlab.analysis.summary import WorkloadSummary
from batchlab.errors import InputError
from batchlab.plots.draw import draw_panel
from batchlab.plots.panel import Panel
from batchlab.plots.steps import perfect_series, steps_axes, steps_series


@dataclass(frozen=True)
class CompareData:
    """The curves, as one panel."""

    panel: Panel

    def table(self) -> list[dict[str, object]]:
        """Return one row for each point."""
        return [
            {
                "series": series.label,
                "kind": series.kind,
                "workload": series.workload,
                "quantity": series.quantity,
                "batch_size": point.x,
                "steps": point.y,
                "low": point.low,
                "high": point.high,
                "num_trials": point.num_trials,
            }
            for series in self.panel.series
            for point in series.points
        ]


def compare_data(summaries: Mapping[str, WorkloadSummary]) -> CompareData:
    """Return the curves of some sweeps, by name; InputError where they have no goal in common."""
    goals = list(dict.fromkeys(str(summary.goal) for summary in summaries.values()))
    if len(goals) > 1:
        raise InputError(f"The sweeps have different goals: {', '.join(goals)}. Give one with --goal.")
    shared, labels = _labels({name: summary.workload for name, summary in summaries.items()})
    series = [
        steps_series(labels[name], summary.workload, summary.goal, summary.rows) for name, summary in summaries.items()
    ]
    anchor = next((curve for curve in series if any(point.y for point in curve.points)), None)
    if anchor is None:
        raise InputError(f"No sweep reached {goals[0]}. Give an easier goal with --goal.")
    series.append(perfect_series(anchor))
    x_axis, y_axis = steps_axes(series, f"Steps to {goals[0]}")
    return CompareData(Panel(name="", title=shared, x_axis=x_axis, y_axis=y_axis, series=tuple(series)))


def compare_figure(data: CompareData) -> Figure:
    """Return the figure, ready to be saved."""
    with style.applied():
        figure = style.new_figure(6.4, 4.8)
        handles = draw_panel(figure.add_subplot(), data.panel)
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _labels(workloads: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return what the workloads begin with in common, and a short label of each sweep.

    >>> _labels({"one": "mnist/fc_9/sgd", "two": "mnist/fc_9/momentum"})
    ('mnist/fc_9', {'one': 'sgd', 'two': 'momentum'})
    """
    parts = [workload.split("/") for workload in workloads.values()]
    if len({tuple(part) for part in parts}) < len(parts):
        return "", {name: name for name in workloads}
    num_shared = 0
    while len(parts) > 1 and len({tuple(part[: num_shared + 1]) for part in parts}) == 1:
        num_shared += 1
    labels = {name: "/".join(part[num_shared:]) for name, part in zip(workloads, parts, strict=True)}
    return "/".join(parts[0][:num_shared]), labels
