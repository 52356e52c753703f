"""How finely a study looked: steps to a goal are those of an evaluation, and the goal may have been met before it.

It was met at one of the steps after the evaluation before, and which one is not known. So a curve is fitted to the
middle of them, and what they may be off counts as noise. Fitted to the evaluations themselves, which are all late, a
plateau of thirty steps that is read every ten would lie a tenth too high: a bias that many batch sizes share, and no
interval would know of (docs/results/coverage.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from batchlab.analysis.answers.headline import Estimate


def earliest_step(evaluated: np.ndarray, steps: float) -> float:
    """Return the earliest step at which a goal may have been met that was seen to be met at `steps`.

    `evaluated` are the steps of a curve, ascending. The steps of a median may lie between two of them; beyond the last
    its gap is taken.

    >>> evaluated = np.array([0, 10, 20, 40])
    >>> [earliest_step(evaluated, steps) for steps in (10, 20, 25, 40, 90)]
    [1.0, 11.0, 6.0, 21.0, 71.0]
    """
    if len(evaluated) < 2 or steps == 0:
        return float(steps)
    upper = min(max(int(np.searchsorted(evaluated, steps)), 1), len(evaluated) - 1)
    return max(float(steps - evaluated[upper] + evaluated[upper - 1] + 1), 1.0)


def grid_noise(answers: Sequence[Estimate]) -> float:
    """Return the noise of the logarithm of middles that comes of looking now and then only: a standard deviation.

    Answers that were read at one evaluation, as those of a plateau are, lie off their middles together: k of them tell
    no more than one, so each counts k times.

    >>> from batchlab.analysis.answers.headline import Estimate
    >>> one, other = Estimate(20, None, earliest=11), Estimate(40, None, earliest=31)
    >>> round(grid_noise([one]), 3), round(grid_noise([one, one]), 3), round(grid_noise([one, other]), 3)
    (0.185, 0.262, 0.143)
    """
    read = [answer for answer in answers if answer.value]
    alike = Counter((answer.earliest_step, answer.value) for answer in read)
    variances = [alike[answer.earliest_step, answer.value] * _spread(answer) ** 2 for answer in read]
    return math.sqrt(sum(variances) / len(read)) if read else 0.0


def _spread(answer: Estimate) -> float:
    """Return the standard deviation of the whole numbers from the earliest to the last step, over their middle."""
    assert answer.value is not None
    number = answer.value - answer.earliest_step + 1
    return math.sqrt(max(number**2 - 1, 0.0) / 12) / answer.middle
