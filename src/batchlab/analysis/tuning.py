"""Tuning: the best metaparameters against batch size, beside the linear and the square-root rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from batchlab.analysis.bootstrap import Bounds, distribution_bounds, rank_probabilities
from batchlab.analysis.steps_to_result import StepsToResult, first_steps
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult

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
    """Return the best metaparameters of every batch size that met the goal, in the order of `rows`.

    >>> from batchlab.analysis import example_workload, steps_to_result
    >>> goal = Goal.read("val/classification_error < 0.08")
    >>> [point.learning_rate for point in tuned_points([steps_to_result(study, goal) for study in example_workload()])]
    [0.03, 0.03, 0.03]
    """
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

    >>> points = [TunedPoint(size, {"learning_rate": 0.1}, ()) for size in (16, 64)]
    >>> guides(points, "learning_rate")
    Guides(linear=(0.1, 0.4), square_root=(0.1, 0.2))
    """
    anchor = getattr(points[0], quantity) if points else None
    if anchor is None:
        return None
    ratios = [point.batch_size / points[0].batch_size for point in points]
    return Guides(tuple(anchor * ratio for ratio in ratios), tuple(anchor * ratio**0.5 for ratio in ratios))


def tuned_bounds(result: StudyResult, goal: Goal, quantity: Quantity, num_trials: int | None = None) -> Bounds | None:
    """Return the exact 95 % bootstrap bounds of the optimal trial's `quantity`; None with a single trial.

    In a draw of trials another one may be the best: the bounds span the values of those that well may be. A side is
    None where the draws without any trial that met the goal are too many, or where trials lack the metaparameter.

    >>> from batchlab.analysis import example_study
    >>> tuned_bounds(example_study(), Goal.read("val/classification_error < 0.1"), "learning_rate")
    (0.01, 0.03)
    """
    steps = first_steps(result, goal, num_trials)
    reached = sorted((step, trial_id) for trial_id, step in steps.items() if step is not None)
    if len(steps) < 2 or not reached:
        return None
    trials = {trial.trial_id: trial for trial in result.trials}
    values = np.full(len(steps), np.nan)
    for rank, (_, trial_id) in enumerate(reached):
        value = getattr(TunedPoint(result.batch_size, trials[trial_id].metaparameters, ()), quantity)
        values[rank] = np.nan if value is None else value
    return distribution_bounds(values, rank_probabilities(len(steps)))
