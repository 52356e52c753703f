"""The axes of a panel: powers of two and of ten, written as powers."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.axis import Axis as MatplotlibAxis
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from batchlab.plots.panel import Axis, Panel

_BASES = {"log2": 2, "log10": 10}
_MAX_TICKS = 9


def set_axes(ax: Axes, panel: Panel) -> None:
    """Give `ax` the scales, limits, ticks and labels of the panel's axes."""
    if panel.x_axis.scale != "linear":
        ax.set_xscale("log", base=_BASES[panel.x_axis.scale])
    if panel.y_axis.scale != "linear":
        ax.set_yscale("log", base=_BASES[panel.y_axis.scale])
    ax.set_xlim(panel.x_axis.low, panel.x_axis.high)
    ax.set_ylim(panel.y_axis.low, panel.y_axis.high)
    _set_ticks(ax.xaxis, panel.x_axis)
    _set_ticks(ax.yaxis, panel.y_axis)
    ax.set_xlabel(panel.x_axis.label, fontsize=8, labelpad=2)
    ax.set_ylabel(panel.y_axis.label, fontsize=8, labelpad=2)
    ax.tick_params(labelsize=7.5)


def power_ticks(low: float, high: float, base: int, max_ticks: int = _MAX_TICKS) -> list[int]:
    """Return the exponents of the whole powers of `base` in the range, thinned evenly to `max_ticks` at the most.

    >>> power_ticks(0.7, 70_000, base=2)
    [0, 2, 4, 6, 8, 10, 12, 14, 16]
    >>> power_ticks(0.01, 1.5, base=2)
    [-6, -5, -4, -3, -2, -1, 0]
    """
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    stride = max(1, math.ceil((last - first + 1) / max_ticks))
    # Multiples of the stride, so that panels side by side have the same ticks.
    return [k for k in range(first, last + 1) if k % stride == 0]


def _set_ticks(axis: MatplotlibAxis, spec: Axis) -> None:
    if spec.scale == "linear":
        return
    base = _BASES[spec.scale]
    axis.set_major_locator(FixedLocator([float(base) ** k for k in power_ticks(spec.low, spec.high, base)]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"${base}^{{{round(math.log(value, base))}}}$"))
