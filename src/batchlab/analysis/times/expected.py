"""Expected: a number with what is known of its error, and the product of two of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from batchlab.analysis.interval import Interval


@dataclass(frozen=True)
class Expected:
    """A number, not below zero, that was measured, fitted or given."""

    value: float
    interval: Interval | None = None
    """95 %; without a bound where none is known on that side, or only one beyond SPAN; None for a number that was
    given, or is exact."""

    is_extrapolated: bool = False
    """Whether it lies beyond what was measured."""

    def __post_init__(self) -> None:
        """Leave out bounds that say nothing."""
        if self.interval is not None:
            object.__setattr__(self, "interval", self.interval.within_span(self.value))

    @property
    def lacks_bound(self) -> bool:
        """Whether an end of its interval is not known, though the number is not exact."""
        return self.interval is not None and self.interval.is_open

    def times(self, other: Expected) -> Expected:
        """Return the product of two independent numbers, with an interval that holds the errors of both.

        The distances of an end from the middle, in logarithms, are added in squares, for each of the two ends by
        itself: "MOVER" (Zou and Donner 2008), which needs the two intervals and no word on where they come from.

        >>> steps, seconds = Expected(100, Interval(80, 125)), Expected(0.01, Interval(0.008, 0.0125))
        >>> product = steps.times(seconds)
        >>> product.value, round(product.interval.low, 3), round(product.interval.high, 3)
        (1.0, 0.729, 1.371)
        """
        value = self.value * other.value
        is_extrapolated = self.is_extrapolated or other.is_extrapolated
        known = [(each.value, each.interval) for each in (self, other) if each.interval is not None]
        if not known:
            return Expected(value, None, is_extrapolated)
        low = _joined([_distance(middle, interval.low) for middle, interval in known])
        high = _joined([_distance(middle, interval.high) for middle, interval in known])
        return Expected(value, Interval.around(value, low, high), is_extrapolated)

    def scaled(self, factor: float) -> Expected:
        """Return so many times the number.

        >>> Expected(2.0, Interval(1.0, None)).scaled(3).interval
        Interval(low=3.0, high=None)
        """
        return self.times(Expected(factor))


def _distance(middle: float, bound: float | None) -> float | None:
    return abs(math.log(bound / middle)) if bound else None


def _joined(distances: list[float | None]) -> float | None:
    known = [distance for distance in distances if distance is not None]
    return math.hypot(*known) if len(known) == len(distances) else None
