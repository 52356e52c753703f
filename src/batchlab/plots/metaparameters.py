"""The figure of tuning: the best metaparameters against batch size, beside two rules of thumb."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import batchlab.plots.style as style
from batchlab.analysis import Guides, TunedPoint, WorkloadSummary, guides


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One quantity at every batch size that met the goal."""

    name: str
    label: str
    batch_sizes: tuple[int, ...]
    values: tuple[float, ...]
    is_at_boundary: tuple[bool, ...]
    guides: Guides | None


@dataclass(frozen=True)
class MetaparametersData:
    """Everything the figure shows, as plain numbers; no panel where the workload has no learning rate."""

    workload: str
    panels: tuple[Panel, ...]

    def table(self) -> list[dict[str, object]]:
        """Return the rows of the CSV file, one for each panel and batch size."""
        return [row for panel in self.panels for row in _rows(panel)]


def metaparameters_data(summary: WorkloadSummary) -> MetaparametersData:
    """Return the panels of `summary`: learning rate and, with momentum, 1 - momentum and the effective rate."""
    points = [point for point in summary.tuned if point.learning_rate is not None and point.learning_rate > 0]
    panels = []
    if points:
        panels.append(_learning_rate(points))
    if points and all(point.momentum is not None for point in points):
        panels += [_momentum(points), _effective_learning_rate(points)]
    return MetaparametersData(summary.workload, tuple(panels))


def metaparameters_figure(data: MetaparametersData) -> Figure:
    """Return the figure, its panels side by side."""
    with style.applied():
        figure = style.new_figure(max(4.2, 3.1 * len(data.panels)), 3.5)
        draw_metaparameters(figure, data)
    return figure


def draw_metaparameters(figure: Figure, data: MetaparametersData) -> None:
    """Draw the panels on an empty figure, with one legend below them."""
    figure.suptitle(data.workload, fontsize=10, parse_math=False)
    handles: dict[str, Line2D] = {}
    for i, panel in enumerate(data.panels):
        ax = figure.add_subplot(1, len(data.panels), i + 1)
        handles.update({str(handle.get_label()): handle for handle in draw_panel(ax, panel)})
    figure.legend(handles=list(handles.values()), loc="outside lower center", ncols=4)


def draw_panel(ax: Axes, panel: Panel) -> list[Line2D]:
    """Draw one quantity on `ax` and return its legend."""
    style.set_batch_size_axis(ax, min(panel.batch_sizes) / 1.5, max(panel.batch_sizes) * 1.5, max_ticks=5)
    # Guides may run far out of the data: show where they leave it, not where they end.
    reach = 3 if panel.guides else 1.6
    style.set_decimal_axis(ax, min(panel.values) / reach, max(panel.values) * reach, panel.label)
    handles = ax.plot(panel.batch_sizes, panel.values, "^-", color=style.BLUE, label="best trial", zorder=3)
    return handles + _draw_guides(ax, panel) + _draw_boundary(ax, panel)


def _learning_rate(points: Sequence[TunedPoint]) -> Panel:
    return Panel(
        name="learning_rate",
        label="Learning rate",
        batch_sizes=tuple(point.batch_size for point in points),
        values=tuple(point.learning_rate or 0.0 for point in points),
        is_at_boundary=tuple("learning_rate" in point.at_boundary for point in points),
        guides=guides(points, "learning_rate"),
    )


def _momentum(points: Sequence[TunedPoint]) -> Panel:
    return Panel(
        name="1 - momentum",
        label="1 \N{MINUS SIGN} momentum",
        batch_sizes=tuple(point.batch_size for point in points),
        values=tuple(1 - (point.momentum or 0.0) for point in points),
        is_at_boundary=tuple("momentum" in point.at_boundary for point in points),
        guides=None,
    )


def _effective_learning_rate(points: Sequence[TunedPoint]) -> Panel:
    return Panel(
        name="effective_learning_rate",
        label="Learning rate / (1 \N{MINUS SIGN} momentum)",
        batch_sizes=tuple(point.batch_size for point in points),
        values=tuple(point.effective_learning_rate or 0.0 for point in points),
        is_at_boundary=tuple(bool({"learning_rate", "momentum"} & set(point.at_boundary)) for point in points),
        guides=guides(points, "effective_learning_rate"),
    )


def _draw_boundary(ax: Axes, panel: Panel) -> list[Line2D]:
    flagged = [i for i, is_flagged in enumerate(panel.is_at_boundary) if is_flagged]
    if not flagged:
        return []
    return ax.plot(
        [panel.batch_sizes[i] for i in flagged],
        [panel.values[i] for i in flagged],
        "^",
        color=style.BLUE,
        markerfacecolor=style.PAPER,
        label="at the edge of its search range",
        zorder=4,
    )


def _draw_guides(ax: Axes, panel: Panel) -> list[Line2D]:
    if panel.guides is None:
        return []
    look: dict[str, Any] = {"color": style.INK, "linewidth": 1, "zorder": 2}
    linear = ax.plot(panel.batch_sizes, panel.guides.linear, "--", label="linear rule", **look)
    return linear + ax.plot(panel.batch_sizes, panel.guides.square_root, ":", label="square-root rule", **look)


def _rows(panel: Panel) -> list[dict[str, object]]:
    return [
        {
            "quantity": panel.name,
            "batch_size": batch_size,
            "value": panel.values[i],
            "is_at_boundary": panel.is_at_boundary[i],
            "linear_rule": panel.guides.linear[i] if panel.guides else None,
            "square_root_rule": panel.guides.square_root[i] if panel.guides else None,
        }
        for i, batch_size in enumerate(panel.batch_sizes)
    ]
