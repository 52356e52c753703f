"""Steps to result of a whole sweep at once: every batch size, at any goal and under any budget, without intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batchlab.core.best_so_far import BestSoFar
from batchlab.core.goal import Goal
from batchlab.errors import InputError


@dataclass(frozen=True)
class FewestSteps:
    """The fewest steps to a goal at one batch size, and the trial that needed them."""

    steps: int
    trial_id: int


def sweep_steps(
    best: BestSoFar,
    goal: Goal,
    num_trials: int | None = None,
    *,
    max_steps: float | None = None,
    max_examples: float | None = None,
) -> dict[int, FewestSteps | None]:
    """Return the fewest steps to `goal` over the first complete trials, by batch size; None where it was not met.

    Budgets are inclusive; a batch size whose study did not train to the end of one is left out.

    >>> from batchlab.analysis import example_workload
    >>> studies = [BestSoFar.of(study, "val/classification_error", True) for study in example_workload()]
    >>> goal = Goal.read("val/classification_error < 0.08")
    >>> {size: row and row.steps for size, row in sweep_steps(BestSoFar.join(studies), goal).items()}
    {16: 800, 64: 200, 256: 100}
    >>> sweep_steps(BestSoFar.join(studies), goal, max_steps=150)
    {16: None, 64: None, 256: FewestSteps(steps=100, trial_id=3)}
    """
    if (goal.metric, goal.is_lower_better) != (best.metric, best.is_lower_better):
        raise InputError(f'These rows are of "{best.metric}" and cannot tell when "{goal}" was met.')
    batch_sizes = [
        size for size, end in sorted(best.end_steps.items()) if _took_part(size, end, max_steps, max_examples)
    ]
    met = np.asarray(goal.is_met(best.value))
    if num_trials is not None:
        met &= best.order < num_trials
    if max_steps is not None:
        met &= best.step <= max_steps
    if max_examples is not None:
        met &= best.step * best.batch_size <= max_examples
    return {size: _fewest(best, met, size) for size in batch_sizes}


def _took_part(batch_size: int, end_step: int, max_steps: float | None, max_examples: float | None) -> bool:
    return (max_steps is None or end_step >= max_steps) and (
        max_examples is None or batch_size * end_step >= max_examples
    )


def _fewest(best: BestSoFar, met: np.ndarray, batch_size: int) -> FewestSteps | None:
    start, end = np.searchsorted(best.batch_size, [batch_size, batch_size + 1])
    rows = start + np.flatnonzero(met[start:end])
    if len(rows) == 0:
        return None
    first = rows[np.argmin(best.step[rows])]  # rows are sorted by trial: of equals the first is the smallest id
    return FewestSteps(int(best.step[first]), int(best.trial_id[first]))
