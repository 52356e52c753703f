"""Batch sizes that trained for more steps than a fitted curve predicts without meeting the goal.

Some do by chance. The data contradict the curve where the others, by a fit without it, do not let expect so many steps
of one more batch size: of made studies whose curve is a hyperbola, 1 % are told so (docs/results/coverage.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from batchlab.analysis.answers.steps_to_result import StepsToResult
from batchlab.analysis.curve.hyperbola import Hyperbola, fit_hyperbola
from batchlab.analysis.curve.spread import Spread
from batchlab.analysis.text import listed


def contradicting(hyperbola: Hyperbola, censored: Sequence[StepsToResult]) -> list[StepsToResult]:
    """Return the rows that trained for more steps than the curve predicts."""
    return [row for row in censored if row.end_step > hyperbola.steps_at(row.batch_size)]


def unexplained(
    against: Sequence[StepsToResult], batch_sizes: np.ndarray, steps: np.ndarray, noise: float = 0.0
) -> list[StepsToResult]:
    """Return those of the rows that the known steps at other batch sizes, and their scatter, do not explain."""
    if not against:
        return []
    others = fit_hyperbola(batch_sizes, steps, noise)
    spread = Spread.of(others, batch_sizes)

    def is_explained(row: StepsToResult) -> bool:
        return math.log(row.end_step / others.steps_at(row.batch_size)) <= spread.half_width(row.batch_size)

    return [row for row in against if not is_explained(row)]


def contradictions(against: Sequence[StepsToResult], beyond_chance: Sequence[StepsToResult]) -> list[str]:
    """Return a sentence on the rows that contradict the curve, and one on the others that lie beyond it."""
    by_chance = [row for row in against if row not in beyond_chance]
    return [
        f"Batch size {listed([row.batch_size for row in rows])} trained for more steps than the fitted curve "
        f"predicts without meeting the goal{verdict}"
        for rows, verdict in (
            (beyond_chance, ": the data contradict the curve."),
            (by_chance, ", by no more than the others scatter about it."),
        )
        if rows
    ]
