"""Metaparameters: the numbers of an optimizer or a schedule, what they may be, and what they are if nobody says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """The values a metaparameter may take: low <= value < high (or > low where `is_open_below`)."""

    low: float
    high: float = float("inf")
    is_open_below: bool = False

    def admits(self, value: float) -> bool:
        """Return whether `value` is allowed."""
        return self.low <= value < self.high and not (self.is_open_below and value == self.low)

    def __str__(self) -> str:
        upper = "" if self.high == float("inf") else f" and below {self.high:g}"
        return f"{'above' if self.is_open_below else 'at least'} {self.low:g}{upper}"


@dataclass(frozen=True)
class Metaparameter:
    """A number that a search may range over."""

    name: str
    bounds: Bounds
    default: float | None = None
    """Its value where a spec says nothing; with None a spec must say something."""


POSITIVE = Bounds(0, is_open_below=True)
SHARE = Bounds(0, 1)

LEARNING_RATE = Metaparameter("learning_rate", POSITIVE)
MOMENTUM = Metaparameter("momentum", SHARE)
BETA_1 = Metaparameter("beta_1", SHARE, 0.9)
BETA_2 = Metaparameter("beta_2", SHARE, 0.999)
EPSILON = Metaparameter("epsilon", Bounds(0), 1e-8)
WEIGHT_DECAY = Metaparameter("weight_decay", Bounds(0), 0.0)
