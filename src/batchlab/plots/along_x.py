"""What belongs to the x axis of a panel: its parts, and single values of it with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import batchlab.plots.style as style
from batchlab.plots.panel import Axis, AxisValue, Span

_LETTERS = 13.4
"""Letters above an axis that an inch of the figure holds."""


def draw_spans(ax: Axes, spans: Sequence[Span], axis: Axis) -> None:
    """Shade the parts of the axis, each under its name; hatch those whose place is not known."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = figure.get_figwidth()
    for span in spans:
        share = math.log(span.right / span.left) / math.log(axis.high / axis.low)
        _shade_span(ax, span, share)
        _name_span(ax, span, _LETTERS * width * share)


def draw_axis_value(ax: Axes, value: AxisValue, axis: Axis) -> Line2D:
    """Draw a value as a dotted line and its interval as a bar on the axis, and return its entry of the legend.

    The entry looks like the line, or where there is none, like the bar; where neither is seen it is words alone.
    """
    bottom, looks = ax.get_ylim()[0], list[dict[str, Any]]()
    if value.value is not None and axis.low < value.value < axis.high:
        looks.append({"color": style.VERMILION, "linestyle": ":", "linewidth": 1.2})
        ax.plot([value.value, value.value], [bottom, value.top], **looks[-1])
    low, high = max(value.low or axis.low, axis.low), min(value.high or axis.high, axis.high)
    if (value.low is not None or value.high is not None) and low < high:
        looks.append({"color": style.VERMILION, "alpha": 0.6, "linewidth": 6, "solid_capstyle": "butt"})
        ax.plot([low, high], [bottom, bottom], clip_on=False, zorder=5, **looks[-1])
    return Line2D([], [], label=value.label, **(looks[0] if looks else {"linestyle": "none"}))


def _shade_span(ax: Axes, span: Span, share: float) -> None:
    if span.colour is not None:
        ax.axvspan(span.left, span.right, color=span.colour, alpha=0.14, linewidth=0, zorder=0)
        return
    # A wide part needs few lines to be seen, and more of them would hide the curve.
    hatch: dict[str, Any] = {"facecolor": "none", "edgecolor": style.HATCH, "hatch": "///" if share < 0.25 else "/"}
    ax.axvspan(span.left, span.right, linewidth=0, zorder=0, **hatch)


def _name_span(ax: Axes, span: Span, room: float) -> None:
    fitting = [label for label in span.labels if max(map(len, label.splitlines())) < room]
    if not fitting:
        return
    ax.text(
        math.sqrt(span.left * span.right),
        1.015,
        fitting[0],
        transform=ax.get_xaxis_transform(),
        ha="center",
        va="bottom",
        fontsize=7.5,
        linespacing=1.05,
    )
