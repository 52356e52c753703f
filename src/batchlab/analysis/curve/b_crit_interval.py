"""The 95 % interval of a fitted critical batch size.

Where B_crit lies well within the batch sizes tried it is the delta method's: Student's t times the standard error of
log B_crit. Towards their ends that covers too rarely, because a curve of which one end was hardly seen may as well have
a B_crit far beyond. There the interval holds every B_crit whose best curve is not worse than the fitted one by more
than chance explains: the profile of the likelihood, with the same quantile. A side on which no B_crit is that much
worse has no bound. Simulated coverage: docs/results/coverage.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from batchlab.analysis.interval import SPAN, Interval

WITHIN = 2.0
"""Well within the batch sizes is a B_crit that lies so far from the smallest and from the largest, as a factor."""

AGREEMENT = 0.1
"""The profile stands in for the delta method where a bound differs by more than this share of its distance."""

NORMAL_QUANTILE = 1.96
"""Of 97.5 %: Student's t without end."""

_GRID = 161
_ZOOMS, _ZOOM_GRID = 8, 21
"""How often the grid about a bound is made twenty times finer, and its points."""

Deviances = Callable[[np.ndarray], np.ndarray]
"""For log B_crits: twice the log of how much likelier the fitted curve is than the best one with that B_crit."""


def log_b_crit_grid(log_sizes: np.ndarray) -> np.ndarray:
    """Return the values of log B_crit that data at these batch sizes could tell of.

    >>> np.exp(log_b_crit_grid(np.log([1.0, 16.0]))[[0, -1]]).round(3).tolist()
    [0.001, 16000.0]
    """
    return np.linspace(log_sizes.min() - math.log(SPAN), log_sizes.max() + math.log(SPAN), _GRID)


def b_crit_interval(log_b_crit: float, log_se: float, log_sizes: np.ndarray, deviances: Deviances) -> Interval:
    """Return the interval of B_crit, fitted to known steps at these batch sizes (three or more).

    >>> interval = b_crit_interval(0.0, 0.1, np.log([0.25, 0.5, 2.0, 4.0]), lambda log_b_crits: log_b_crits**2)
    >>> round(interval.low, 2), round(interval.high, 2)  # exp(t / 10), t = 4.30
    (0.65, 1.54)
    """
    half_width = quantile(len(log_sizes)) * log_se
    even = Interval.around(math.exp(log_b_crit), half_width, half_width)
    if log_sizes.min() + math.log(WITHIN) <= log_b_crit <= log_sizes.max() - math.log(WITHIN):
        return even
    profile = _profile_interval(log_b_crit, log_sizes, deviances)
    return even if _agree(even, profile, AGREEMENT * half_width) else profile


def _agree(one: Interval, other: Interval, allowance: float) -> bool:
    pairs = ((one.low, other.low), (one.high, other.high))
    return all(a is not None and b is not None and abs(math.log(a / b)) <= allowance for a, b in pairs)


def quantile(num_known: int) -> float:
    """Return Student's t of 97.5 % with two degrees of freedom less than known steps."""
    from scipy.special import stdtrit

    return float(stdtrit(num_known - 2, 0.975))


def _profile_interval(log_b_crit: float, log_sizes: np.ndarray, deviances: Deviances) -> Interval:
    num_known = len(log_sizes)
    # Normal noise of unknown size: twice the log likelihood ratio at which Student's t has its quantile.
    limit = num_known * math.log1p(quantile(num_known) ** 2 / (num_known - 2))
    grid = log_b_crit_grid(log_sizes)

    def bound(beyond: np.ndarray) -> float | None:
        """Return where the deviance passes the limit for good, on a grid that leads away from the fit."""
        for _ in range(_ZOOMS):
            held = np.flatnonzero(deviances(beyond) <= limit)
            last = int(held[-1]) if len(held) else 0
            if last == len(beyond) - 1:
                return None
            beyond = np.linspace(beyond[last], beyond[last + 1], _ZOOM_GRID)
        return math.exp(beyond[-1])

    below, above = grid[grid < log_b_crit][::-1], grid[grid > log_b_crit]
    return Interval(bound(np.array([log_b_crit, *below])), bound(np.array([log_b_crit, *above])))
