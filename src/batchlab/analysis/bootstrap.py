"""Intervals over trials: the bootstrap of a minimum, in closed form.

Steps to result is the smallest of n trials' steps, the best measurement the smallest of their best values. Draw n
trials with replacement: the smallest is at or below the k-th smallest unless all n draws miss those k trials, so

    P(min <= k-th smallest) = 1 - ((n - k) / n)^n,

and no simulation is needed. A trial that never met the goal is censored: it ranks after all others, at an
unknown number of steps beyond the end of training.

The smallest itself is redrawn with a probability of about 63 %, so the lower bound is always the observed
minimum: resampling cannot know of better trials than those that were run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

LOW, HIGH = 0.025, 0.975
"""The quantiles of a 95 % interval."""

Bounds = tuple[float | None, float | None]
"""An interval; None where the data give no bound on that side."""

Number = TypeVar("Number", int, float)


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
    bounds = minimum_bounds(reached_steps, num_trials)
    return None if bounds is None else Interval(*bounds)


def minimum_bounds(values: Sequence[Number], num_trials: int) -> tuple[Number, Number | None] | None:
    """Return the exact 95 % bootstrap bounds of the smallest of any ascending `values`, one for each trial.

    Trials beyond `len(values)` have no value and rank last: an upper bound among them is None. None where
    there is no value, or one trial only.

    >>> minimum_bounds([0.021, 0.022, 0.024, 0.03], num_trials=32)
    (0.021, 0.03)
    """
    if num_trials < 2 or not values:
        return None
    low, high = _ranks(np.array([LOW, HIGH]), num_trials)
    return values[low - 1], values[high - 1] if high <= len(values) else None


def rank_probabilities(num_trials: int) -> np.ndarray:
    """Return the probabilities that the best trial of a draw is the best of all, the second best, and so on.

    >>> rank_probabilities(2).tolist()
    [0.75, 0.25]
    """
    missed = ((num_trials - np.arange(num_trials + 1)) / num_trials) ** num_trials
    return np.asarray(missed[:-1] - missed[1:])


def distribution_bounds(values: np.ndarray, probabilities: np.ndarray) -> Bounds:
    """Return the 95 % bounds of a discrete distribution.

    An infinite value is known to lie beyond all others on its side; NaN lies nobody knows where. A bound
    that falls on either is None.

    >>> distribution_bounds(np.array([3.0, 1.0, np.inf]), np.array([0.6, 0.3, 0.1]))
    (1.0, None)
    """
    low = _quantile(np.where(np.isnan(values), -np.inf, values), probabilities, LOW)
    high = _quantile(np.where(np.isnan(values), np.inf, values), probabilities, HIGH)
    return (low if np.isfinite(low) else None), (high if np.isfinite(high) else None)


def ratio_bounds(
    reached_steps: Sequence[int], num_trials: int, base_steps: Sequence[int], num_base_trials: int
) -> Bounds | None:
    """Return the exact 95 % bootstrap bounds of the ratio of two independent minima; None with a single trial.

    >>> ratio_bounds([100, 110], 2, [200, 250], 2)
    (0.4, 0.55)
    """
    if min(num_trials, num_base_trials) < 2:
        return None
    steps, base = _by_rank(reached_steps, num_trials), _by_rank(base_steps, num_base_trials)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = steps[:, None] / base[None, :]
    # All that is known of a ratio to a censored number is that it lies below the others.
    ratios[np.isfinite(steps)[:, None] & np.isinf(base)[None, :]] = -np.inf
    joint = np.outer(rank_probabilities(num_trials), rank_probabilities(num_base_trials))
    return distribution_bounds(ratios.ravel(), joint.ravel())


def resample_minimum(
    reached_steps: Sequence[int], num_trials: int, rng: np.random.Generator, num_resamples: int
) -> np.ndarray:
    """Return bootstrap draws of the smallest steps, infinite where every trial drawn is censored.

    Draws come from the closed form, one uniform number for each, whatever the number of trials.

    >>> resample_minimum([40, 44], 3, np.random.default_rng(1), 5).tolist()
    [40.0, 44.0, 40.0, 44.0, 40.0]
    """
    ranks = _ranks(rng.random(num_resamples), num_trials)
    return np.take(_by_rank(reached_steps, num_trials), ranks - 1)


def _by_rank(reached_steps: Sequence[int], num_trials: int) -> np.ndarray:
    steps = np.full(num_trials, np.inf)
    steps[: len(reached_steps)] = reached_steps
    return steps


def _ranks(probabilities: np.ndarray, num_trials: int) -> np.ndarray:
    """Return for each probability the smallest k with P(min <= k-th smallest) at or above it."""
    k = np.arange(1, num_trials + 1)
    reached = 1 - ((num_trials - k) / num_trials) ** num_trials
    return np.searchsorted(reached, probabilities) + 1


def _quantile(values: np.ndarray, probabilities: np.ndarray, quantile: float) -> float:
    order = np.argsort(values, kind="stable")
    place = np.searchsorted(np.cumsum(probabilities[order]), quantile)
    return float(values[order[min(int(place), len(order) - 1)]])
