"""Tuning: the best metaparameters against batch size, the region they lie in, and two rules of thumb beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from batchlab.analysis.answers.headline import Headline
from batchlab.analysis.answers.steps_to_result import StepsToResult

RATES = ("learning_rate", "lr")
"""What the learning rate may be called; a workload has one of them."""

Quantity = Literal["learning_rate", "momentum", "effective_learning_rate"]


@dataclass(frozen=True)
class TunedPoint:
    """The metaparameters of the headline's trial at one batch size, and those of the trials close to it."""

    batch_size: int
    metaparameters: dict[str, float]
    at_boundary: tuple[str, ...]
    top: tuple[dict[str, float], ...] = ()
    """The metaparameters of the top trials: those that met the goal within 1.5 times the fewest steps."""

    searched: tuple[str, ...] = ()
    """The names that a search chose the values of; the others are the same for all trials."""

    @property
    def tuned(self) -> dict[str, float]:
        """The metaparameters that were searched; all of them where none is known to have been.

        >>> TunedPoint(64, {"learning_rate": 0.1, "beta_2": 0.999}, (), searched=("learning_rate",)).tuned
        {'learning_rate': 0.1}
        """
        found = {name: value for name, value in self.metaparameters.items() if name in self.searched}
        return found or self.metaparameters

    @property
    def num_top(self) -> int:
        """How many trials the region spans; 0 where too few were close to the best."""
        return len(self.top)

    @property
    def region(self) -> dict[str, tuple[float, float]]:
        """The smallest and the largest value of each metaparameter over the top trials; empty without them."""
        found = {name: _spread([point.get(name) for point in self.top]) for name in self.metaparameters}
        return {name: spread for name, spread in found.items() if spread}

    def region_of(self, quantity: str) -> tuple[float, float] | None:
        """Return the spread of a metaparameter, or of the effective learning rate, over the top trials."""
        if quantity == "effective_learning_rate":
            return _spread([_effective_learning_rate(point) for point in self.top])
        return self.region.get(quantity)

    @property
    def learning_rate(self) -> float | None:
        """The (initial) learning rate; None for a workload without one."""
        return None if self.rate_name is None else self.metaparameters[self.rate_name]

    @property
    def learning_rate_region(self) -> tuple[float, float] | None:
        """The smallest and the largest learning rate over the top trials; None without them."""
        return None if self.rate_name is None else self.region.get(self.rate_name)

    @property
    def rate_name(self) -> str | None:
        """What the learning rate is called; None for a workload without one."""
        return next((name for name in RATES if name in self.metaparameters), None)

    @property
    def momentum(self) -> float | None:
        """The momentum; None for a workload without one."""
        return self.metaparameters.get("momentum")

    @property
    def effective_learning_rate(self) -> float | None:
        """learning_rate / (1 - momentum), the step for each unit of a lasting gradient; no momentum is 0.

        None for a momentum of 1, with which steps grow without end.
        """
        return _effective_learning_rate(self.metaparameters)


def tuned_points(rows: Sequence[StepsToResult], headline: Headline = "minimum") -> tuple[TunedPoint, ...]:
    """Return the best metaparameters of every batch size that met the goal by training, in the order of `rows`.

    They are those of the confirmed configuration where that is the headline, else those of the optimal trial.

    >>> from batchlab.analysis import example_workload, steps_to_result
    >>> from batchlab.core.goal import Goal
    >>> goal = Goal.read("val/classification_error < 0.1")
    >>> points = tuned_points([steps_to_result(study, goal) for study in example_workload()])
    >>> points[0].metaparameters["learning_rate"], points[0].region["learning_rate"]
    (0.01, (0.01, 0.03))
    """
    return tuple(_tuned_point(row, headline) for row in rows if row.trial and not row.start_met)


@dataclass(frozen=True)
class Guides:
    """What two rules of thumb would make of the value at the smallest batch size."""

    linear: tuple[float, ...]
    square_root: tuple[float, ...]


def guides(points: Sequence[TunedPoint], quantity: Quantity) -> Guides | None:
    """Return both rules for `quantity` at the batch sizes of `points`, anchored at the first one.

    None where there is no point, or where the first has no such metaparameter.

    >>> points = [TunedPoint(size, {"learning_rate": 0.1}, ()) for size in (16, 64)]
    >>> guides(points, "learning_rate")
    Guides(linear=(0.1, 0.4), square_root=(0.1, 0.2))
    """
    anchor = getattr(points[0], quantity) if points else None
    if anchor is None:
        return None
    ratios = [point.batch_size / points[0].batch_size for point in points]
    return Guides(tuple(anchor * ratio for ratio in ratios), tuple(anchor * ratio**0.5 for ratio in ratios))


def _tuned_point(row: StepsToResult, headline: Headline) -> TunedPoint:
    answer = row.winner(headline)
    point = dict(answer.trial.metaparameters) if answer.trial else {}
    top = tuple(trial.metaparameters for trial in row.top_trials)
    if top and point not in top:
        top = (*top, point)  # confirmed, though not among the top of the search
    return TunedPoint(row.batch_size, point, answer.at_boundary, top, row.searched)


def _effective_learning_rate(point: dict[str, float]) -> float | None:
    rate, momentum = next((point[name] for name in RATES if name in point), None), point.get("momentum", 0.0)
    return None if rate is None or momentum >= 1 else rate / (1 - momentum)


def _spread(values: Sequence[float | None]) -> tuple[float, float] | None:
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else None
