"""Scaling: how well each batch size turns examples into fewer steps, and which regime it is in.

Scaling efficiency is e(B) = steps(B0) B0 / (steps(B) B), with B0 the smallest batch size that met the
goal; 1 is perfect scaling. The paper judged the regimes by eye; the two thresholds are ours, and single-seed
noise is of the same order: try others before you conclude.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from batchlab.analysis.steps_to_result import StepsToResult

Regime = Literal["perfect", "diminishing", "maximal"]

MIN_EFFICIENCY = 0.8
"""Scaling is perfect while no batch size so far fell below this efficiency."""

MAX_EXCESS = 0.25
"""A batch size is as large as is useful once its steps exceed the fewest steps by no more than this share."""


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """The regimes of a curve; tuples are aligned with its rows, None where the goal was not met."""

    base_batch_size: int | None
    """B0, to which efficiency is relative; None where no batch size met the goal."""

    efficiencies: tuple[float | None, ...]
    regimes: tuple[Regime | None, ...]
    end_of_perfect: int | None
    """The largest batch size of the perfect regime."""

    max_useful: int | None
    """The smallest batch size whose steps are close to the fewest; larger ones save little or nothing."""

    is_saturated: bool
    """Whether a batch size beyond `max_useful` was tried; if not, `max_useful` is only a lower bound."""

    is_perfect_throughout: bool
    """Whether the perfect regime holds to the largest batch size tried; if so its end was not seen."""


def measure_scaling(
    rows: Sequence[StepsToResult], *, min_efficiency: float = MIN_EFFICIENCY, max_excess: float = MAX_EXCESS
) -> Scaling:
    """Return efficiency and regime of each row; `rows` in ascending batch size.

    A single batch size at the end of the curve shows no plateau: the regime is `maximal` only where a
    larger batch size than `max_useful` met the goal too.

    >>> from batchlab.analysis import example_workload, steps_to_result
    >>> from batchlab.core.goal import Goal
    >>> goal = Goal.read("val/classification_error < 0.1")
    >>> scaling = measure_scaling([steps_to_result(study, goal) for study in example_workload()])
    >>> scaling.efficiencies, scaling.regimes
    ((1.0, 1.0, 0.5), ('perfect', 'perfect', 'diminishing'))
    """
    steps = {row.batch_size: row.steps for row in rows if row.steps is not None}
    efficiencies = scaling_efficiencies(steps)
    end_of_perfect = end_of_perfect_scaling(steps, min_efficiency)
    max_useful = max_useful_batch_size(steps, max_excess)
    largest = max(steps, default=None)
    is_saturated = max_useful != largest
    regimes = {size: _regime(size, end_of_perfect, max_useful if is_saturated else None) for size in steps}
    return Scaling(
        base_batch_size=min(steps, default=None),
        efficiencies=tuple(efficiencies.get(row.batch_size) for row in rows),
        regimes=tuple(regimes.get(row.batch_size) for row in rows),
        end_of_perfect=end_of_perfect,
        max_useful=max_useful,
        is_saturated=is_saturated,
        is_perfect_throughout=end_of_perfect is not None and end_of_perfect == largest,
    )


def scaling_efficiencies(steps: Mapping[int, float]) -> dict[int, float]:
    """Return e(B) = steps(B0) B0 / (steps(B) B) by batch size, from steps by ascending batch size.

    >>> scaling_efficiencies({16: 800, 64: 200, 256: 100})
    {16: 1.0, 64: 1.0, 256: 0.5}
    """
    if not steps:
        return {}
    base = min(steps)
    # A goal met at step 0 needs no update at all: every batch size is as good as any other.
    return {size: _ratio(steps[base] * base, steps[size] * size) for size in steps}


def end_of_perfect_scaling(steps: Mapping[int, float], min_efficiency: float = MIN_EFFICIENCY) -> int | None:
    """Return the largest batch size up to which no efficiency falls below `min_efficiency`; None of no steps.

    >>> end_of_perfect_scaling({16: 800, 64: 200, 256: 100}), end_of_perfect_scaling({16: 800, 64: 200, 256: 100}, 0.5)
    (64, 256)
    """
    efficiencies = scaling_efficiencies(steps)
    perfect = list(takewhile(lambda size: efficiencies[size] >= min_efficiency, efficiencies))
    return perfect[-1] if perfect else None


def max_useful_batch_size(steps: Mapping[int, float], max_excess: float = MAX_EXCESS) -> int | None:
    """Return the smallest batch size whose steps exceed the fewest by no more than `max_excess`; None of no steps.

    >>> max_useful_batch_size({16: 800, 64: 120, 256: 100}), max_useful_batch_size({16: 800, 64: 120, 256: 100}, 0.1)
    (64, 256)
    """
    return next((size for size in steps if steps[size] <= (1 + max_excess) * min(steps.values())), None)


def _ratio(base_examples: float, examples: float) -> float:
    return base_examples / examples if examples else 1.0


def _regime(batch_size: int, end_of_perfect: int | None, max_useful: int | None) -> Regime:
    if end_of_perfect is not None and batch_size <= end_of_perfect:
        return "perfect"
    return "maximal" if max_useful is not None and batch_size >= max_useful else "diminishing"
