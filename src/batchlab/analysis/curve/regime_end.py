"""RegimeEnd: the batch size at which a regime ends or begins, with its range."""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_OCTAVES = 2.0
"""A range that spans more doublings allows no firm sentence."""


@dataclass(frozen=True)
class RegimeEnd:
    """Where a regime ends or begins, a batch size."""

    value: float | None
    """None where it was not seen."""

    low: float | None
    high: float | None
    """95 % range; None where it is open on that side."""

    @property
    def octaves(self) -> float:
        """How many doublings the range spans; infinite where it is open."""
        return math.inf if self.low is None or self.high is None else math.log2(self.high / self.low)

    @property
    def is_firm(self) -> bool:
        """Whether the range is narrow enough for a firm sentence."""
        return self.octaves <= MAX_OCTAVES
