"""Intervals of steps to result over trials: the bootstrap of a minimum, in closed form.

Steps to result is the smallest of n trials' steps. Draw n trials with replacement: the smallest is at or
below the k-th smallest unless all n draws miss those k trials, so

    P(min <= k-th smallest) = 1 - ((n - k) / n)^n,

and no simulation is needed. A trial that never met the goal is censored: it ranks after all others, at an
unknown number of steps beyond the end of training.

The smallest itself is redrawn with a probability of about 63 %, so the lower bound is always the observed
minimum: resampling cannot know of better trials than those that were run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LOW, HIGH = 0.025, 0.975
"""The quantiles of a 95 % interval."""


@dataclass(frozen=True)
class Interval:
    """A 95 % interval of steps to result."""

    low: int
    high: int | None
    """None: censored, somewhere beyond the steps that were trained."""


def minimum_interval(reached_steps: Sequence[int], num_trials: int) -> Interval | None:
    """Return the exact bootstrap interval of the smallest steps, or None where one trial alone gives none.

    `reached_steps` are the steps of the trials that met the goal, ascending; the remaining trials of
    `num_trials` are censored.

    >>> minimum_interval([40, 44, 52, 60], num_trials=32)
    Interval(low=40, high=60)
    >>> minimum_interval([40, 44, 52], num_trials=32)
    Interval(low=40, high=None)
    """
    if num_trials < 2 or not reached_steps:
        return None
    low, high = _ranks(np.array([LOW, HIGH]), num_trials)
    return Interval(reached_steps[low - 1], reached_steps[high - 1] if high <= len(reached_steps) else None)


def resample_minimum(
    reached_steps: Sequence[int], num_trials: int, rng: np.random.Generator, num_resamples: int
) -> np.ndarray:
    """Return bootstrap draws of the smallest steps, infinite where every trial drawn is censored.

    Draws come from the closed form, one uniform number for each, whatever the number of trials.
    """
    ranks = _ranks(rng.random(num_resamples), num_trials)
    steps = np.full(num_trials, np.inf)
    steps[: len(reached_steps)] = reached_steps
    return np.take(steps, ranks - 1)


def _ranks(probabilities: np.ndarray, num_trials: int) -> np.ndarray:
    """Return for each probability the smallest k with P(min <= k-th smallest) at or above it."""
    k = np.arange(1, num_trials + 1)
    reached = 1 - ((num_trials - k) / num_trials) ** num_trials
    return np.searchsorted(reached, probabilities) + 1
