"""Interval: two bounds of a number, either of which may be missing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """A 95 % interval; None where there is no bound on that side."""

    low: float | None
    high: float | None

    @property
    def is_open(self) -> bool:
        """Whether a bound is missing."""
        return self.low is None or self.high is None


NO_INTERVAL = Interval(None, None)
"""Nothing is known on either side."""


def interval_json(interval: Interval | None) -> list[float | None] | None:
    """Return the two bounds as JSON has them; None for a number that has no interval by nature.

    >>> interval_json(Interval(1.0, None))
    [1.0, None]
    """
    return None if interval is None else [interval.low, interval.high]
