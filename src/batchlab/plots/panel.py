"""What one panel of a figure shows, as plain numbers."""

from __future__ import annotations

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
class Panel:
    """One panel; without any series it is empty and its notes say why."""

    name: str
    """Its letter in the figure; empty where it is the only one."""

    title: str
    x_axis: Axis
    y_axis: Axis
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()
    """What is missing, or differs from what the panel should show, a phrase each."""

    is_ordered: bool = False
    """Whether its measured series have an order that their colours should show."""

    legend: Literal["upper right", "upper left"] | None = "upper right"
    """The corner for the names of its curves, one that they leave free; None where the figure's legend names them."""

    contours: tuple[float, ...] = ()
    """Values of x / y along which lines are drawn."""

    def of_kind(self, kind: Kind) -> list[Series]:
        """Return the series of one kind."""
        return [series for series in self.series if series.kind == kind]
