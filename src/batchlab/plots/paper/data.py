"""What a figure of the paper shows, as plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "measured",
    "perfect scaling",
    "linear rule",
    "square-root rule",
    "published",
    "goal met",
    "goal not met",
    "infeasible",
    "best",
]
"""What a series is, which also decides how it is drawn."""

Scale = Literal["log2", "log10", "linear"]


@dataclass(frozen=True)
class Point:
    """One mark of a series."""

    x: float
    y: float | None
    """None: the goal was not met; there is nothing to draw."""

    low: float | None = None
    high: float | None = None
    """The 95 % interval; one bound alone means that it is open on the other side."""

    num_trials: int | None = None
    """Complete trials behind a measured point."""

    @property
    def is_open(self) -> bool:
        """Whether the interval has a lower bound only."""
        return self.low is not None and self.high is None


@dataclass(frozen=True, kw_only=True)
class Series:
    """Marks that belong together, under one entry of the legend."""

    label: str
    kind: Kind
    workload: str
    quantity: str
    """What y is, and where it matters under which goal and budget."""

    points: tuple[Point, ...]

    @property
    def drawn(self) -> tuple[Point, ...]:
        """The points that have a y."""
        return tuple(point for point in self.points if point.y is not None)


@dataclass(frozen=True)
class Axis:
    """The scale of an axis and what is on it."""

    label: str
    scale: Scale
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class PaperPanel:
    """One panel; without any series it is empty and its notes say why."""

    name: str
    """Its letter in the figure; empty where it is the only one."""

    title: str
    x_axis: Axis
    y_axis: Axis
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()
    """What is missing, or differs from the paper's panel, a phrase each."""

    is_ordered: bool = False
    """Whether its measured series have an order that their colours should show."""

    legend: Literal["upper right", "upper left"] | None = "upper right"
    """The corner for the names of its curves, one that they leave free; None where the figure's legend names them."""

    contours: tuple[float, ...] = ()
    """Values of x / y along which lines are drawn."""

    def of_kind(self, kind: Kind) -> list[Series]:
        """Return the series of one kind."""
        return [series for series in self.series if series.kind == kind]


@dataclass(frozen=True, kw_only=True)
class PaperFigureData:
    """Everything a figure shows."""

    number: int
    caption: str
    columns: int
    panel_aspect: float
    """Width over height of a panel."""

    panels: tuple[PaperPanel, ...]

    def table(self) -> list[dict[str, object]]:
        """Return the rows of the CSV file: one for each mark, and one for each note."""
        return [row for panel in self.panels for row in (*self._marks(panel), *self._notes(panel))]

    def _marks(self, panel: PaperPanel) -> Iterator[dict[str, object]]:
        for series in panel.series:
            for point in series.points:
                yield {
                    "figure": self.number,
                    "panel": panel.name,
                    "title": panel.title,
                    "series": series.label,
                    "kind": series.kind,
                    "workload": series.workload,
                    "quantity": series.quantity,
                    "x": point.x,
                    "y": point.y,
                    "low": point.low,
                    "high": point.high,
                    "num_trials": point.num_trials,
                    "note": None,
                }

    def _notes(self, panel: PaperPanel) -> Iterator[dict[str, object]]:
        empty = dict.fromkeys(
            ["series", "kind", "workload", "quantity", "x", "y", "low", "high", "num_trials"],
        )
        for note in panel.notes:
            yield {"figure": self.number, "panel": panel.name, "title": panel.title, **empty, "note": note}


def log_axis(label: str, scale: Scale, values: Iterable[float | None], guides: Iterable[float | None] = ()) -> Axis:
    """Return a logarithmic axis that holds all `values`, and of the `guides` what lies close enough to them.

    >>> log_axis("Steps", "log2", [64.0, 1024.0], [1.0])
    Axis(label='Steps', scale='log2', low=5.65685424949238, high=1448.1546878700494)
    """
    positive = [value for value in values if value] or [1.0]
    reach = [value for value in guides if value] + positive
    # Guides run far away from the data: show where they leave them, not where they end.
    low = max(min(reach), min(positive) / _GUIDE_REACH)
    high = min(max(reach), max(positive) * _GUIDE_REACH)
    return Axis(label, scale, low / _MARGIN, high * _MARGIN)


def linear_axis(label: str, values: Iterable[float | None], window: tuple[float, float] | None = None) -> Axis:
    """Return a linear axis over the paper's window where it holds most of the `values`, else over all of them.

    The window may cut off the highest values, as in the paper, but never the lowest: those are the best.

    >>> linear_axis("Error", [0.01, 0.02, 0.5], (0.0, 0.04))
    Axis(label='Error', scale='linear', low=0.0, high=0.04)
    """
    known = [value for value in values if value is not None] or [0.0, 1.0]
    lowest, highest = min(known), max(known)
    margin = 0.05 * (highest - lowest) or 0.1
    if window is None or not holds_most(window, known):
        return Axis(label, "linear", lowest - margin, highest + margin)
    low, high = window
    return Axis(label, "linear", low if low <= lowest else lowest - 0.05 * (high - lowest), high)


def holds_most(window: tuple[float, float], values: Iterable[float]) -> bool:
    """Return whether at least half of the values lie in `window`.

    >>> holds_most((0.0, 1.0), [0.5, 2.0])
    True
    """
    inside = [window[0] <= value <= window[1] for value in values]
    return 2 * sum(inside) >= len(inside)


_GUIDE_REACH = 8.0
_MARGIN = 2**0.5
