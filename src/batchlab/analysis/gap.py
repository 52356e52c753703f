"""How finely a study looked: steps to a goal are those of an evaluation, and the goal may have been met before it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def gap_before(evaluated: np.ndarray, steps: float) -> float:
    """Return the logarithm of the evaluation that found the goal met over the one before it.

    `evaluated` are the steps of a curve, ascending. Beyond them the last gap is taken. Step 0 counts as half a step.

    >>> evaluated = np.array([0, 10, 20, 30])
    >>> [round(math.exp(gap_before(evaluated, steps)), 3) for steps in (10, 20, 25, 30, 90)]
    [20.0, 2.0, 1.5, 1.5, 1.5]
    """
    if len(evaluated) < 2:
        return 0.0
    upper = min(max(int(np.searchsorted(evaluated, steps)), 1), len(evaluated) - 1)
    return math.log(max(float(evaluated[upper]), 1.0) / max(float(evaluated[upper - 1]), 0.5))


def grid_noise(gaps: Sequence[float]) -> float:
    """Return the noise of log steps that comes of looking now and then only, as a standard deviation.

    A goal is met anywhere within its gap, and seen later by half of it on average. What is later by the same at all
    batch sizes moves a curve up and does not bend it. What differs bends it, as gaps that are wide on a plateau do: it
    counts three times, with which intervals of the critical batch size cover (docs/results/coverage.md).

    >>> round(grid_noise([math.log(1.1)] * 3), 4), round(grid_noise([0.0, 0.0, math.log(1.1)]), 4)
    (0.0275, 0.042)
    """
    if not gaps:
        return 0.0
    return math.sqrt(float(np.mean(np.square(gaps))) / 12 + 3 * float(np.var(gaps)) / 4)
