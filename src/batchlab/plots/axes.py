"""The axes of a panel: linear, or powers of two or ten, written as powers or as plain numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.axis import Axis as MatplotlibAxis
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from batchlab.plots.panel import Axis, Panel

_BASES = {"log2": 2, "log10": 10}
MAX_TICKS = 9
"""Labels on an axis."""

_MAX_NUMBERS = 5
"""Of a small panel, where numbers are written out: 16,384 is five times as wide as a power."""


def set_axes(ax: Axes, panel: Panel, is_small: bool) -> None:
    """Give `ax` the scales, limits, ticks and labels of the panel's axes."""
    if panel.x_axis.scale != "linear":
        ax.set_xscale("log", base=_BASES[panel.x_axis.scale])
    if panel.y_axis.scale != "linear":
        ax.set_yscale("log", base=_BASES[panel.y_axis.scale])
    ax.set_xlim(panel.x_axis.low, panel.x_axis.high)
    ax.set_ylim(panel.y_axis.low, panel.y_axis.high)
    _set_ticks(ax.xaxis, panel.x_axis, _MAX_NUMBERS if is_small and panel.x_axis.ticks == "numbers" else MAX_TICKS)
    _set_ticks(ax.yaxis, panel.y_axis, MAX_TICKS)
    size, pad = (8.0, 2) if is_small else (9.0, 4)
    ax.set_xlabel(panel.x_axis.label, fontsize=size, labelpad=pad, parse_math=False)
    ax.set_ylabel(panel.y_axis.label, fontsize=size, labelpad=pad, parse_math=False)
    ax.tick_params(labelsize=size - 0.5)


def power_ticks(low: float, high: float, base: int, max_ticks: int = MAX_TICKS) -> list[int]:
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


def decimal_ticks(low: float, high: float, max_ticks: int = MAX_TICKS) -> list[float]:
    """Return 1, 2, 5, 10, ... between `low` and `high`; fewer of each decade where they would crowd, more where few.

    >>> decimal_ticks(0.015, 0.6)
    [0.02, 0.05, 0.1, 0.2, 0.5]
    >>> decimal_ticks(0.08, 0.12)
    [0.08, 0.09, 0.1, 0.12]
    >>> decimal_ticks(0.0007, 14, max_ticks=5)
    [0.001, 0.01, 0.1, 1.0, 10.0]
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        # Through decimal text, so that 3e-05 is the number one writes.
        ticks = [tick for k in decades for digit in digits if low <= (tick := float(f"{digit}e{k}")) <= high]
        if len(ticks) <= max_ticks:
            break
    fine = [tick for k in decades for digit in _FINE if low <= (tick := float(f"{digit}e{k}")) <= high]
    if len(ticks) < 3 and len(fine) <= max_ticks:
        return fine
    return ticks[:: math.ceil(len(ticks) / max_ticks)] if ticks else ticks


_FINE = (1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)


def _set_ticks(axis: MatplotlibAxis, spec: Axis, max_ticks: int) -> None:
    if spec.scale == "linear":
        return
    base = _BASES[spec.scale]
    if spec.ticks == "numbers" and base == 10:
        ticks = decimal_ticks(spec.low, spec.high, max_ticks)
    else:
        ticks = [float(base) ** k for k in power_ticks(spec.low, spec.high, base, max_ticks)]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(_plain if spec.ticks == "numbers" else _power_of(base)))


def _plain(value: float, _: int | None) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


def _power_of(base: int) -> Callable[[float, int | None], str]:
    return lambda value, _: f"${base}^{{{round(math.log(value, base))}}}$"
