"""Axes that hold the values they are made for."""

from __future__ import annotations

from collections.abc import Iterable

from batchlab.plots.panel import Axis, Scale, Ticks

MARGIN = 2**0.5
"""How far a logarithmic axis goes beyond the outermost of its values, as a factor."""

_FAR_APART = 5


def log_axis(
    label: str,
    scale: Scale,
    values: Iterable[float | None],
    guides: Iterable[float | None] = (),
    ticks: Ticks = "powers",
    reach: float = 8.0,
) -> Axis:
    """Return a logarithmic axis that holds all `values`, and of the `guides` what lies within a factor of `reach`.

    >>> log_axis("Steps", "log2", [64.0, 1024.0], [1.0])
    Axis(label='Steps', scale='log2', low=5.65685424949238, high=1448.1546878700494, ticks='powers')
    """
    positive = [value for value in values if value] or [1.0]
    all_values = [value for value in guides if value] + positive
    # Guides run far away from the data: show where they leave them, not where they end.
    low = max(min(all_values), min(positive) / reach)
    high = min(max(all_values), max(positive) * reach)
    return Axis(label, scale, low / MARGIN, high * MARGIN, ticks)


def linear_axis(label: str, values: Iterable[float | None], window: tuple[float, float] | None = None) -> Axis:
    """Return a linear axis over the paper's window where it holds most of the `values`, else over all of them.

    The window may cut off the highest values, as in the paper, but never the lowest: those are the best.

    >>> linear_axis("Error", [0.01, 0.02, 0.5], (0.0, 0.04))
    Axis(label='Error', scale='linear', low=0.0, high=0.04, ticks='powers')
    """
    known = [value for value in values if value is not None] or [0.0, 1.0]
    lowest, highest = min(known), max(known)
    margin = 0.05 * (highest - lowest) or 0.1
    if window is None or not holds_most(window, known):
        return Axis(label, "linear", lowest - margin, highest + margin)
    low, high = window
    return Axis(label, "linear", low if low <= lowest else lowest - 0.05 * (high - lowest), high)


def value_axis(label: str, values: Iterable[float | None]) -> Axis:
    """Return an axis for a metric or metaparameter: logarithmic where its values lie above 0 and a factor of 5 apart.

    >>> value_axis("Error", [0.9, 0.02]).scale, value_axis("Error", [0.9, 0.3]).scale, value_axis("Error", [1, 0]).scale
    ('log10', 'linear', 'linear')
    """
    known = [value for value in values if value is not None]
    if known and min(known) > 0 and max(known) >= _FAR_APART * min(known):
        return log_axis(label, "log10", known, ticks="numbers")
    return linear_axis(label, known)


def holds_most(window: tuple[float, float], values: Iterable[float]) -> bool:
    """Return whether at least half of the values lie in `window`.

    >>> holds_most((0.0, 1.0), [0.5, 2.0])
    True
    """
    inside = [window[0] <= value <= window[1] for value in values]
    return 2 * sum(inside) >= len(inside)
