"""How panels are drawn, alone or on a sheet, whatever they show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import batchlab.plots.style as style
from batchlab.plots.along_x import draw_axis_value, draw_spans
from batchlab.plots.axes import set_axes
from batchlab.plots.marks import BEST_LABEL, CONTOUR_LABEL, LOOKS, columns, draw_contours, draw_intervals, draw_series
from batchlab.plots.panel import Panel, Point, Series
from batchlab.plots.sheet import Sheet
from batchlab.plots.words import wrapped

_COLOURS = (style.BLUE, style.VERMILION, style.GREEN, style.ORANGE, style.PURPLE, "#56B4E9")
_MARKERS = "^v<>^v"
_MAX_WITH_INTERVALS = 3
"""More curves than this with intervals hide each other; their bounds are in the table."""

_LETTERS = 15.5
"""Letters of a legend that an inch holds."""

_SYMBOL = 7
"""Letters that would fit in the place of an entry's symbol."""


def draw_sheet(sheet: Sheet) -> style.ShownFigure:
    """Return the figure, ready to be saved: its panels, a caption above and a legend of what they share below."""
    rows = math.ceil(len(sheet.panels) / sheet.columns)
    with style.applied():
        figure = style.new_figure(sheet.width, 1.0)
        figure.set_layout_engine("constrained", w_pad=0.07, h_pad=0.07)
        handles: dict[str, Line2D] = {}
        for i, panel in enumerate(sheet.panels):
            ax = figure.add_subplot(rows, sheet.columns, i + 1)
            drawn = draw_panel(ax, panel, is_small=len(sheet.panels) > 1)
            handles.update({str(handle.get_label()): handle for handle in drawn})
        if sheet.heading:
            caption = wrapped(sheet.heading, round(14.5 * sheet.width))
            figure.suptitle(caption, x=0.01, ha="left", fontsize=8.5, parse_math=False)
        legend_rows = _draw_legend(figure, sorted(handles.values(), key=_place_in_legend), sheet.width)
        height = rows * sheet.width / sheet.columns / sheet.panel_aspect
        figure.set_figheight(height + 0.9 + 0.18 * max(0, legend_rows - 1))
    return figure


def draw_panel(ax: Axes, panel: Panel, is_small: bool = True) -> list[Line2D]:
    """Draw one panel and return the entries of the legend that it shares with others."""
    title = f"({panel.name}) {panel.title}" if panel.name else panel.title
    pad = 30 if panel.spans else 15 if panel.counted else 6
    ax.set_title(title, fontsize=9 if is_small else 10, pad=pad, parse_math=False)
    _draw_notes(ax, panel)
    if not panel.series:
        ax.set(xticks=[], yticks=[])
        return []
    set_axes(ax, panel, is_small)
    draw_spans(ax, panel.spans, panel.x_axis)
    handles = [*draw_contours(ax, panel), *_draw_measured(ax, panel)]
    for series in panel.series:
        if series.kind in LOOKS:
            handles += draw_series(ax, series, _colour_of_its_curve(panel, series))
    handles += [draw_axis_value(ax, value, panel.x_axis) for value in panel.axis_values]
    _draw_counts(ax, panel)
    return handles


def _draw_legend(figure: Figure, handles: Sequence[Line2D], width: float) -> int:
    """Draw the entries below the panels, in one row where they fit, and return the number of rows."""
    if not handles:
        return 0
    rows = _legend_rows([len(str(handle.get_label())) for handle in handles], _LETTERS * width)
    legend = figure.legend(handles=list(handles), loc="outside lower center", ncols=math.ceil(len(handles) / rows))
    for text in legend.get_texts():
        text.set_parse_math(False)
    return rows


def _legend_rows(lengths: Sequence[int], width: float) -> int:
    """Return the fewest rows in which entries of these lengths fit, filled column by column; all in letters."""
    for rows in range(1, len(lengths)):
        columns = [lengths[i : i + rows] for i in range(0, len(lengths), rows)]
        if sum(max(column) + _SYMBOL for column in columns) <= width:
            return rows
    return len(lengths)


def _draw_measured(ax: Axes, panel: Panel) -> list[Line2D]:
    measured = panel.of_kind("measured")
    handles: list[Line2D] = []
    for i, (series, colour) in enumerate(zip(measured, _curve_colours(panel), strict=True)):
        marker = "" if panel.is_dense else "^" if panel.is_ordered else _MARKERS[i % len(_MARKERS)]
        points = series.points if panel.has_gaps else _on_axis(panel, series)
        label = series.label if panel.legend else series.legend or series.label
        look: dict[str, Any] = {"markersize": 4.5 if panel.is_ordered else 5.5, "linewidth": 1.1, "zorder": 4}
        for line in series.behind:
            ax.plot(*columns(line, "x", "y"), color=colour, **_PALE)
        if points:
            handles += ax.plot(*columns(points, "x", "y"), marker=marker, color=colour, label=label, **look)
    shared = _draw_all_intervals(ax, panel)
    if handles and panel.legend:
        legend = ax.legend(handles=handles, loc=panel.legend, fontsize=7, handlelength=1.6, labelspacing=0.3)
        for text in legend.get_texts():
            text.set_parse_math(False)
        return shared
    return handles + shared


def _curve_colours(panel: Panel) -> list[str]:
    number = len(panel.of_kind("measured"))
    return [_ordered_colour(i, number) if panel.is_ordered else _COLOURS[i % len(_COLOURS)] for i in range(number)]


def _colour_of_its_curve(panel: Panel, series: Series) -> str | None:
    """Return the colour of the curve that published points belong to, where there are several; None for the usual."""
    measured = panel.of_kind("measured")
    if series.kind != "published" or len(measured) == 1:
        return None
    pairs = zip(measured, _curve_colours(panel), strict=True)
    same = (series.workload, series.quantity)
    return next((colour for curve, colour in pairs if (curve.workload, curve.quantity) == same), None)


def _draw_all_intervals(ax: Axes, panel: Panel) -> list[Line2D]:
    measured = panel.of_kind("measured")
    if len(measured) > _MAX_WITH_INTERVALS or panel.is_ordered:
        return []
    drawn: list[Line2D] = []
    for i, series in enumerate(measured):
        shift = i - (len(measured) - 1) / 2
        drawn += draw_intervals(ax, _on_axis(panel, series), _COLOURS[i], series.bars, shift)
    if len(measured) > 1:  # the bars have the colours of their curves, their names have none
        for handle in drawn:
            handle.set_color(style.GREY)
    return drawn


def _on_axis(panel: Panel, series: Series) -> list[Point]:
    is_log = panel.y_axis.scale != "linear"
    # A goal met before the first update has no place on a log axis.
    return [point for point in series.drawn if point.y or not is_log]


def _ordered_colour(i: int, number: int) -> str:
    # The last tenth of the map is too pale for thin lines on white.
    return to_hex(colormaps["viridis"](0.88 * i / max(1, number - 1)))


def _draw_counts(ax: Axes, panel: Panel) -> None:
    """Write how many points of each class there are between the title and the axes, where they hide none."""
    counted = panel.counted
    if not counted:
        return
    words = [f"{len(series.points)} {series.label}" for series in counted]
    num_beyond = sum(not _is_inside(panel, point) for series in counted for point in series.points)
    if num_beyond:
        words.append(f"{num_beyond} beyond the axes")
    ax.text(0.5, 1.015, ", ".join(words), transform=ax.transAxes, ha="center", va="bottom", fontsize=7)


def _is_inside(panel: Panel, point: Point) -> bool:
    axis_x, axis_y = panel.x_axis, panel.y_axis
    return axis_x.low <= point.x <= axis_x.high and point.y is not None and axis_y.low <= point.y <= axis_y.high


def _draw_notes(ax: Axes, panel: Panel) -> None:
    if not panel.notes:
        return
    text = "\n".join(wrapped(note, 34) for note in panel.notes)
    # The legend's corner is free of curves; below them, on the left, there is room as well.
    if panel.series and not panel.legend and not panel.counted:
        ax.text(0.97, 0.97, text, transform=ax.transAxes, fontsize=6.5, ha="right", va="top", parse_math=False)
    elif panel.series:
        ax.text(0.03, 0.03, text, transform=ax.transAxes, fontsize=6.5, bbox=_BOX, zorder=6, parse_math=False)
    else:
        ax.text(0.5, 0.5, text, transform=ax.transAxes, fontsize=8, ha="center", va="center", parse_math=False)


def _place_in_legend(handle: Line2D) -> int:
    label = str(handle.get_label())
    return next((i for i, start in enumerate(_LEGEND_ORDER, start=1) if label.startswith(start)), 0)


_LEGEND_ORDER = (
    "minimum",
    "not reached",
    "perfect scaling",
    "fit",
    "critical batch size",
    "linear rule",
    "square-root rule",
    "goal met",
    "goal not met",
    "infeasible",
    BEST_LABEL,
    CONTOUR_LABEL,
    "published",
)
"""How entries begin, by their place; all others, the measured curves and their intervals, stand before them."""

_PALE: dict[str, Any] = {"linewidth": 0.6, "alpha": 0.45, "zorder": 2}
_BOX: dict[str, Any] = {"facecolor": style.PAPER, "edgecolor": "none", "alpha": 0.85, "pad": 2}
