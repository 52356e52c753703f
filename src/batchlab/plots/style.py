"""How every figure looks: colours, sizes, logarithmic axes with plain numbers on them.

Nothing here changes matplotlib for anyone else: settings hold inside `applied()` only.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

INK = "#1a1a1a"
"""Text, axes and guides. The report lets it follow the colour of the page's own text."""

PAPER = "#ffffff"
"""The background, and the inside of hollow markers."""

# Okabe and Ito's palette, told apart by readers with any colour vision.
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
ORANGE = "#E69F00"
PURPLE = "#CC79A7"

_SETTINGS: dict[Any, Any] = {
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.alpha": 0.12,
    "grid.color": INK,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.edgecolor": "none",
    "legend.facecolor": PAPER,
    "legend.framealpha": 0.75,
    "lines.linewidth": 1.4,
    "lines.markersize": 6.5,
    "savefig.dpi": 200,
    "svg.fonttype": "path",
    "svg.hashsalt": "batchlab",
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "ytick.color": INK,
    "ytick.labelsize": 8,
}

MAX_TICKS = 9
"""Labels on an axis of a figure of its own; small panels have room for fewer."""


def applied() -> AbstractContextManager[None]:
    """Return a context in which figures are made, drawn and saved in this style."""
    return matplotlib.rc_context(_SETTINGS)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of that size in inches, tied to no window."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def set_batch_size_axis(ax: Axes, low: float, high: float, max_ticks: int = MAX_TICKS) -> None:
    """Make x the batch size, from `low` to `high`, in powers of two."""
    ax.set_xscale("log", base=2)
    ax.set_xlim(low, high)
    _set_ticks(ax.xaxis, power_of_two_ticks(low, high, max_ticks))
    ax.set_xlabel("Batch size (examples per update)")


def set_steps_axis(ax: Axes, low: float, high: float, label: str) -> None:
    """Make y a number of steps, from `low` to `high`, in powers of two."""
    ax.set_yscale("log", base=2)
    ax.set_ylim(low, high)
    _set_ticks(ax.yaxis, power_of_two_ticks(low, high))
    ax.set_ylabel(label, parse_math=False)


def set_decimal_axis(ax: Axes, low: float, high: float, label: str) -> None:
    """Make y a positive quantity, from `low` to `high`, on a decimal log scale."""
    ax.set_yscale("log", base=10)
    ax.set_ylim(low, high)
    _set_ticks(ax.yaxis, decimal_ticks(low, high))
    ax.set_ylabel(label, parse_math=False)


def power_of_two_ticks(low: float, high: float, max_ticks: int = MAX_TICKS) -> list[float]:
    """Return the whole powers of two between `low` and `high`, thinned evenly to `max_ticks` at the most.

    >>> power_of_two_ticks(0.7, 5000)
    [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0]
    """
    first, last = max(0, math.ceil(math.log2(low))), math.floor(math.log2(high))
    stride = max(1, math.ceil((last - first + 1) / max_ticks))
    return [2.0**k for k in range(first, last + 1, stride)]


def decimal_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10, ... between `low` and `high`, or fewer of each decade where they would crowd.

    >>> decimal_ticks(0.015, 0.6)
    [0.02, 0.05, 0.1, 0.2, 0.5]
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        # Through decimal text, so that 3e-05 is the number one writes.
        ticks = [tick for k in decades for digit in digits if low <= (tick := float(f"{digit}e{k}")) <= high]
        if len(ticks) <= MAX_TICKS:
            return ticks
    return ticks


def _set_ticks(axis: Axis, ticks: list[float]) -> None:
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 10 else f"{value:g}"))
