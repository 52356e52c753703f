"""Best of m: the median of the minimum of m trials, with an interval that needs no distribution.

The minimum of all n trials is one draw of a random number whose spread cannot be seen. The minimum of m < n is a
quantile of one trial's steps, since P(min of m > q) = P(one > q)^m is 1/2 at p = 1 - 2^(-1/m), and order statistics
bound any quantile: the number of trials at or below it is binomial. m is the largest for which the smallest of n trials
is a lower bound in 97.5 % of studies, 2^(-n/m) <= 1/40. A trial that never met the goal ranks last.

It assumes that trials are independent draws from one distribution, so it is not defined for a grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from batchlab.analysis.interval import Interval

MIN_TRIALS = 6
"""Fewer give no lower bound, even for m = 1."""

TAIL = 1 / 40


@dataclass(frozen=True)
class BestOf:
    """What a search of m trials would give: the median of its fewest steps."""

    m: int
    steps: float | None
    """None where too few trials met the goal to tell."""

    interval: Interval
    """95 %, by order statistics; `high` is None where it is a trial that never met the goal."""


def best_of(reached_steps: Sequence[int], num_trials: int) -> BestOf | None:
    """Return the best of m of `num_trials` trials, or None below six trials or where no trial met the goal.

    `reached_steps` are the steps of those that met it, ascending. The estimate is the median of the minimum of m
    trials drawn from these without replacement, in closed form.

    >>> best_of([40, 44, 52, 60, 61, 65, 70, 90], num_trials=32)
    BestOf(m=6, steps=60, interval=Interval(low=40, high=90))
    >>> best_of([40, 44, 52, 60], num_trials=32).interval
    Interval(low=40, high=None)
    """
    if num_trials < MIN_TRIALS or not reached_steps:
        return None
    m = size_of_best(num_trials)
    rank = upper_rank(num_trials, m)
    high = reached_steps[rank - 1] if rank <= len(reached_steps) else None
    return BestOf(m, _median_of_minimum(reached_steps, num_trials, m), Interval(reached_steps[0], high))


def size_of_best(num_trials: int) -> int:
    """Return m, the largest number of trials whose median minimum n trials can bound below.

    >>> [size_of_best(n) for n in (6, 8, 12, 16, 24, 32, 50, 64, 100)]
    [1, 1, 2, 3, 4, 6, 9, 12, 18]
    """
    return math.floor(num_trials * math.log(2) / math.log(1 / TAIL))


def upper_rank(num_trials: int, m: int) -> int:
    """Return k: the k-th smallest of n trials bounds the median minimum of m above in 97.5 % of studies.

    >>> [upper_rank(n, size_of_best(n)) for n in (6, 8, 12, 16, 24, 32, 50, 64, 100)]
    [6, 8, 8, 8, 9, 8, 9, 9, 9]
    """
    tails = _tails(num_trials, m)
    return next(k for k, tail in enumerate(tails) if tail <= TAIL)


def _tails(num_trials: int, m: int) -> list[float]:
    """Return P(Bin(n, p) >= k) for k = 0, 1, ..., n + 1, p a trial's chance to beat the median minimum."""
    miss = 2 ** (-1 / m)
    odds = (1 - miss) / miss
    terms = [miss**num_trials]
    for k in range(1, num_trials + 1):
        terms.append(terms[-1] * odds * (num_trials - k + 1) / k)
    tails = [0.0]
    for term in reversed(terms):
        tails.append(tails[-1] + term)
    return tails[::-1]


def _median_of_minimum(reached_steps: Sequence[int], num_trials: int, m: int) -> float | None:
    draws = math.comb(num_trials, m)
    # The minimum of a draw lies beyond the j-th smallest in C(n - j, m) of the draws.
    rank = next(j for j in range(1, num_trials + 1) if 2 * math.comb(num_trials - j, m) <= draws)
    is_between = 2 * math.comb(num_trials - rank, m) == draws
    if rank + is_between > len(reached_steps):
        return None
    if not is_between:
        return reached_steps[rank - 1]
    return (reached_steps[rank - 1] + reached_steps[rank]) / 2
