"""Interval: two bounds of a number, either of which may be missing."""

from __future__ import annotations

import math
from dataclasses import dataclass

SPAN = 1e3
"""Data tell no more than this factor: a bound that lies farther from its middle says nothing, and is none."""


@dataclass(frozen=True)
class Interval:
    """A 95 % interval; None where there is no bound on that side."""

    low: float | None
    high: float | None

    @property
    def is_open(self) -> bool:
        """Whether a bound is missing."""
        return self.low is None or self.high is None

    @classmethod
    def around(cls, middle: float, below: float | None, above: float | None) -> Interval:
        """Return the interval that reaches so far from a middle, in logarithms; None and more than SPAN are no bound.

        >>> Interval.around(2.0, math.log(2), 8.0)
        Interval(low=1.0, high=None)
        """
        low, high = (None if each is None or each > math.log(SPAN) else each for each in (below, above))
        return cls(None if low is None else middle * math.exp(-low), None if high is None else middle * math.exp(high))

    def within_span(self, middle: float) -> Interval:
        """Return the bounds that lie within SPAN of a middle, which is not below zero.

        Above a middle of zero there is no factor: an upper bound stays. A lower bound of zero is none.

        >>> Interval(0.0, 5.0).within_span(1.0), Interval(0.0, 5.0).within_span(0.0)
        (Interval(low=None, high=5.0), Interval(low=None, high=5.0))
        """
        has_low = self.low is not None and self.low > 0 and self.low * SPAN >= middle
        has_high = self.high is not None and (middle == 0 or self.high <= middle * SPAN)
        return Interval(self.low if has_low else None, self.high if has_high else None)


NO_INTERVAL = Interval(None, None)
"""Nothing is known on either side."""


def interval_json(interval: Interval | None) -> list[float | None] | None:
    """Return the two bounds as JSON has them; None for a number that has no interval by nature.

    >>> interval_json(Interval(1.0, None))
    [1.0, None]
    """
    return None if interval is None else [interval.low, interval.high]
