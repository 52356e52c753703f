"""Tuning: the best metaparameters against batch size, beside the linear and the square-root rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from batchlab.analysis.steps_to_result import StepsToResult

Quantity = Literal["learning_rate", "momentum", "effective_learning_rate"]


@dataclass(frozen=True)
class TunedPoint:
    """The metaparameters of the optimal trial at one batch size."""

    batch_size: int
    metaparameters: dict[str, float]
    at_boundary: tuple[str, ...]

    @property
    def learning_rate(self) -> float | None:
        """The (initial) learning rate; None for a workload without one."""
        return self.metaparameters.get("learning_rate")

    @property
    def momentum(self) -> float | None:
        """The momentum; None for a workload without one."""
        return self.metaparameters.get("momentum")

    @property
    def effective_learning_rate(self) -> float | None:
        """learning_rate / (1 - momentum), the step for each unit of a lasting gradient; no momentum is 0."""
        return None if self.learning_rate is None else self.learning_rate / (1 - (self.momentum or 0.0))


def tuned_points(rows: Sequence[StepsToResult]) -> tuple[TunedPoint, ...]:
    """Return the best metaparameters of every batch size that met the goal, in the order of `rows`."""
    return tuple(
        TunedPoint(row.batch_size, dict(row.trial.metaparameters), row.at_boundary) for row in rows if row.trial
    )


@dataclass(frozen=True)
class Guides:
    """What two rules of thumb would make of the value at the smallest batch size."""

    linear: tuple[float, ...]
    square_root: tuple[float, ...]


def guides(points: Sequence[TunedPoint], quantity: Quantity) -> Guides | None:
    """Return both rules for `quantity` at the batch sizes of `points`, anchored at the first one.

    None where there is no point, or where the first has no such metaparameter.
    """
    anchor = getattr(points[0], quantity) if points else None
    if anchor is None:
        return None
    ratios = [point.batch_size / points[0].batch_size for point in points]
    return Guides(tuple(anchor * ratio for ratio in ratios), tuple(anchor * ratio**0.5 for ratio in ratios))
