"""How sure the ends of the scaling regimes are: 95 % bounds by the bootstrap over trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from batchlab.analysis.bootstrap import HIGH, LOW, Bounds, ratio_bounds
from batchlab.analysis.regimes import MAX_EXCESS, MIN_EFFICIENCY, end_of_perfect_scaling, max_useful_batch_size
from batchlab.analysis.steps_to_result import StepsToResult, resample_steps

NUM_RESAMPLES = 400

Steps = dict[int, float]
"""Batch size -> steps, ascending in batch size."""


@dataclass(frozen=True, kw_only=True)
class ScalingBounds:
    """Intervals of what `measure_scaling` gives for the same rows and thresholds."""

    efficiencies: tuple[Bounds | None, ...]
    """Aligned with the rows and exact; None where the goal was not met, or with a single trial."""

    end_of_perfect: Bounds | None
    """Of the batch sizes tried, so it is never narrower than their spacing; None where no batch size met the goal."""

    max_useful: Bounds | None


def bound_scaling(
    rows: Sequence[StepsToResult],
    *,
    min_efficiency: float = MIN_EFFICIENCY,
    max_excess: float = MAX_EXCESS,
    seed: int = 0,
    num_resamples: int = NUM_RESAMPLES,
) -> ScalingBounds:
    """Return 95 % bounds of scaling efficiency, the end of perfect scaling and the maximum useful batch size.

    The trials of each batch size are resampled. A draw in which no trial met the goal is taken at the end of training,
    the least it can be.

    >>> from batchlab.analysis import example_workload, steps_to_result
    >>> from batchlab.core.goal import Goal
    >>> goal = Goal.read("val/classification_error < 0.08")
    >>> bounds = bound_scaling([steps_to_result(study, goal) for study in example_workload()])
    >>> bounds.efficiencies[2], bounds.max_useful
    ((0.3333333333333333, 0.75), (256.0, 256.0))
    """
    reached = [row for row in rows if row.steps is not None]
    draws = _draws(reached, seed, num_resamples)
    return ScalingBounds(
        efficiencies=tuple(_efficiency(row, reached[0]) if row.steps is not None else None for row in rows),
        end_of_perfect=_spread(draws, lambda steps: end_of_perfect_scaling(steps, min_efficiency)),
        max_useful=_spread(draws, lambda steps: max_useful_batch_size(steps, max_excess)),
    )


def _draws(reached: Sequence[StepsToResult], seed: int, num_resamples: int) -> list[Steps]:
    rng = np.random.default_rng(seed)
    columns = [resample_steps(row, rng, num_resamples).tolist() for row in reached]
    return [dict(zip((row.batch_size for row in reached), draw, strict=True)) for draw in zip(*columns, strict=True)]


def _efficiency(row: StepsToResult, base: StepsToResult) -> Bounds | None:
    if row is base:
        return 1.0, 1.0
    bounds = ratio_bounds(base.reached_steps, base.num_trials, row.reached_steps, row.num_trials)
    if bounds is None:
        return None
    factor = base.batch_size / row.batch_size
    low, high = (None if bound is None else bound * factor for bound in bounds)
    return low, high


def _spread(draws: list[Steps], measure: Callable[[Steps], int | None]) -> Bounds | None:
    found = [size for size in map(measure, draws) if size is not None]
    if not found:
        return None
    low, high = np.quantile(found, [LOW, HIGH], method="inverted_cdf")
    return float(low), float(high)
