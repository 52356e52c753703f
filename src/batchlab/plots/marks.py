"""The marks of a panel: guides, published points, points by outcome, intervals, contours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import batchlab.plots.style as style
from batchlab.plots.panel import Kind, Panel, Point, Series

BEST_LABEL = "fewest steps to the goal"
CONTOUR_LABEL = "constant learning rate / (1 \N{MINUS SIGN} momentum)"
OPEN_LABEL = "interval open above"

_BAR: dict[str, Any] = {"linewidth": 2.2, "alpha": 0.9}
_UP = 18
"""Points that an arrow is long: how far an open interval reaches is not known."""

LOOKS: dict[Kind, dict[str, Any]] = {
    "minimum": {
        "color": style.BLUE,
        "linestyle": "none",
        "marker": "D",
        "markersize": 3,
        "markerfacecolor": style.PAPER,
        "markeredgewidth": 0.8,
        "zorder": 5,
    },
    "not reached": {
        "color": style.INK,
        "linestyle": "none",
        "marker": "_",
        "markersize": 8,
        "markeredgewidth": 1.2,
        "zorder": 4,
    },
    "fit": {"color": style.VERMILION, "linestyle": "-", "linewidth": 1.1, "zorder": 2},
    "perfect scaling": {"color": style.INK, "linestyle": "--", "linewidth": 0.9, "zorder": 2},
    "linear rule": {"color": style.INK, "linestyle": "--", "linewidth": 0.9, "zorder": 2},
    "square-root rule": {"color": style.GREEN, "linestyle": "-.", "linewidth": 1.1, "zorder": 2},
    "published": {
        "color": style.GREY,
        "linestyle": "none",
        "marker": "o",
        "markersize": 7.5,
        "markerfacecolor": "none",
        "markeredgewidth": 1.0,
        "zorder": 5,
    },
    "infeasible": {
        "color": style.INK,
        "linestyle": "none",
        "marker": "x",
        "markersize": 3.5,
        "markeredgewidth": 0.7,
        "alpha": 0.5,
        "zorder": 2,
    },
    "goal not met": {
        "color": style.VERMILION,
        "linestyle": "none",
        "marker": "^",
        "markersize": 4.5,
        "markeredgewidth": 0,
        "alpha": 0.8,
        "zorder": 3,
    },
    "goal met": {
        "color": style.BLUE,
        "linestyle": "none",
        "marker": "o",
        "markersize": 4.5,
        "markeredgewidth": 0,
        "zorder": 4,
    },
    "best": {
        "color": "#F0E442",
        "linestyle": "none",
        "marker": "*",
        "markersize": 13,
        "markeredgecolor": style.INK,
        "markeredgewidth": 0.8,
        "zorder": 5,
    },
    "at the edge": {
        "color": style.BLUE,
        "linestyle": "none",
        "marker": "^",
        "markersize": 5.5,
        "markerfacecolor": style.PAPER,
        "zorder": 5,
    },
    "goal": {"color": style.INK, "linestyle": "--", "linewidth": 0.9, "zorder": 3},
    "goal first met": {
        "color": style.INK,
        "linestyle": "none",
        "marker": "o",
        "markersize": 5.5,
        "markerfacecolor": style.PAPER,
        "zorder": 5,
    },
    "extrapolated": {
        "color": style.VERMILION,
        "linestyle": "none",
        "marker": "o",
        "markersize": 8,
        "markerfacecolor": "none",
        "markeredgewidth": 0.9,
        "zorder": 5,
    },
    "shared cores": {
        "color": style.INK,
        "linestyle": "none",
        "marker": "s",
        "markersize": 9,
        "markerfacecolor": "none",
        "markeredgewidth": 0.8,
        "zorder": 5,
    },
    "pick": {
        "color": "#F0E442",
        "linestyle": "none",
        "marker": "*",
        "markersize": 12,
        "markeredgecolor": style.INK,
        "markeredgewidth": 0.8,
        "zorder": 6,
    },
}
"""How every kind of series but the measured curves is drawn."""


def draw_series(ax: Axes, series: Series, colour: str | None = None) -> list[Line2D]:
    """Draw a series of a kind in LOOKS and return its entry of the legend; none where it has no point.

    In a colour of its own it shares the entry with others of its kind, so that the entry keeps the usual one.
    """
    if not series.drawn:
        return []
    if series.kind == "not reached":
        for point in series.drawn:
            draw_arrow(ax, point, style.INK)
    look = LOOKS[series.kind]
    lines = ax.plot(*columns(series.drawn, "x", "y"), label=_legend(series), **look)
    if colour is None:
        return lines
    lines[0].set_color(colour)
    return [Line2D([], [], label=_legend(series), **look)]


def columns(points: Sequence[Point], *names: str) -> list[np.ndarray]:
    """Return fields of all points, each as an array with NaN where it is None.

    >>> columns([Point(16, None), Point(64, 200)], "x", "y")
    [array([16., 64.]), array([ nan, 200.])]
    """
    return [np.array([getattr(point, name) for point in points], dtype=float) for name in names]


def draw_intervals(ax: Axes, points: Sequence[Point], colour: str, label: str, shift: float) -> list[Line2D]:
    """Draw intervals as bars and return their entries of the legend; one that is open above ends in an arrow.

    The bars of several curves are shifted sideways by a tenth of an octave, so that none hides another.
    """
    bars = [point for point in points if point.low is not None]
    if not bars:
        return []
    x, y, low, high = columns(bars, "x", "y", "low", "high")
    ax.vlines(x * 2 ** (0.1 * shift), low, np.where(np.isnan(high), y, high), color=colour, zorder=3, **_BAR)
    glyph: dict[str, Any] = {"linestyle": "none", "color": colour, "markersize": 9}
    handles = [Line2D([], [], marker="|", markeredgewidth=_BAR["linewidth"], label=label, **glyph)]
    is_open = [point for point in bars if point.is_open]
    for point in is_open:
        draw_arrow(ax, point, colour, shift)
    if is_open:
        handles.append(Line2D([], [], marker=r"$\uparrow$", label=OPEN_LABEL, **glyph))
    return handles


def draw_arrow(ax: Axes, point: Point, colour: str, shift: float = 0.0) -> None:
    """Draw an arrow up from a point: more than that, and it is not known how much."""
    ax.annotate(
        "",
        (point.x * 2 ** (0.1 * shift), point.y or 1),
        xytext=(0, _UP),
        textcoords="offset points",
        arrowprops={"arrowstyle": "<-", "color": colour, "linewidth": 1.0, "shrinkA": 0, "shrinkB": 0},
        annotation_clip=True,
    )


def draw_contours(ax: Axes, panel: Panel) -> list[Line2D]:
    """Draw the lines along which x / y is one of the panel's contours, each with its value, and return their legend."""
    axis_x, axis_y = panel.x_axis, panel.y_axis
    look: dict[str, Any] = {"color": style.GREY, "linewidth": 0.6, "alpha": 0.6}
    for value in panel.contours:
        ends = [max(axis_x.low, value * axis_y.low), min(axis_x.high, value * axis_y.high)]
        if ends[0] < ends[1]:
            ax.plot(ends, [x / value for x in ends], zorder=1, **look)
            _label_contour(ax, value, ends[1])
    return [Line2D([], [], label=CONTOUR_LABEL, **look)] if panel.contours else []


def _label_contour(ax: Axes, value: float, end: float) -> None:
    ax.annotate(
        f"{value:g}",
        (end, end / value),
        xytext=(-2, -7),
        textcoords="offset points",
        fontsize=6,
        color=style.GREY,
        ha="right",
    )


def _legend(series: Series) -> str:
    return BEST_LABEL if series.kind == "best" else series.legend or series.label
