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
