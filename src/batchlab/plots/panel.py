"""What one panel of a figure shows, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "measured",
    "minimum",
    "not reached",
    "perfect scaling",
    "fit",
    "linear rule",
    "square-root rule",
    "published",
    "goal met",
    "goal not met",
    "infeasible",
    "best",
    "at the edge",
    "goal",
    "goal first met",
    "extrapolated",
    "pick",
    "shared cores",
]
"""What a series is, which also decides how it is drawn."""

_OUTCOMES: tuple[Kind, ...] = ("goal met", "goal not met", "infeasible")

Scale = Literal["log2", "log10", "linear"]
Ticks = Literal["powers", "numbers"]


@dataclass(frozen=True)
class Point:
    """One mark of a series."""

    x: float
    y: float | None
    """None: the goal was not met; there is nothing to draw."""

    low: float | None = None
    high: float | None = None
    """The interval; one bound alone means that it is open on the other side."""

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
    legend: str | None = None
    """What a legend shared by several panels calls it; its label where None."""

    bars: str = ""
    """What the bars from low to high are, for the legend."""

    behind: tuple[tuple[Point, ...], ...] = ()
    """Lines of its colour, thin and pale, that lie behind those of all series."""

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
    ticks: Ticks = "powers"
    """How a logarithmic axis is written: 2 to a power, or 1,024."""


@dataclass(frozen=True)
class Span:
    """A part of the x axis with a meaning of its own."""

    labels: tuple[str, ...]
    """Its name, from the longest form to the shortest; the first that fits is written above it."""

    colour: str | None
    """None where it is not known which of its neighbours it belongs to: it is hatched then."""

    left: float
    right: float


@dataclass(frozen=True)
class AxisValue:
    """A value of x with its interval, drawn as a line up to `top` and a bar on the axis."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    """A bound that is None is open: the bar runs to that end of the axis. Without any bound there is no bar."""

    top: float


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel; without any series it is empty and its notes say why."""

    name: str = ""
    """Its letter in the figure; empty where it is the only one."""

    title: str
    x_axis: Axis
    y_axis: Axis
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()
    """What is missing, or differs from what the panel should show, a phrase each."""

    is_ordered: bool = False
    """Whether its measured series have an order that their colours should show."""

    has_gaps: bool = False
    """Whether a measured line breaks at a point without a y; else it goes on to the next one."""

    is_dense: bool = False
    """Whether its measured series have too many points for a mark at each of them."""

    legend: Literal["upper right", "upper left", "best"] | None = "upper right"
    """The corner for the names of its curves, one that they leave free, or the best that there is; None where the
    figure's legend names them."""

    contours: tuple[float, ...] = ()
    """Values of x / y along which lines are drawn."""

    spans: tuple[Span, ...] = ()
    axis_values: tuple[AxisValue, ...] = ()

    @property
    def counted(self) -> list[Series]:
        """The series of points by outcome, which are counted above the axes."""
        return [series for kind in _OUTCOMES for series in self.of_kind(kind)]

    def of_kind(self, kind: Kind) -> list[Series]:
        """Return the series of one kind."""
        return [series for series in self.series if series.kind == kind]
