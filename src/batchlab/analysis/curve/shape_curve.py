"""The shape-constrained curve: steps against batch size where no formula is trusted.

Twice the batch size never needs more steps, never saves more than half of them, and saves less and less: log S is
convex in x = log B with a slope between -1 and 0. The least-squares curve of that kind is
log S = a - sum_j p_j (min(x, x_j) - x_0) with p_j >= 0 and sum p_j <= 1, one bounded least-squares problem.

How far an end of a regime can be moved is asked of the same problem: that efficiency is 0.8 at B is one more linear
equation, and B belongs to the range unless the squares rise by more than noise explains (Student's t, one degree of
freedom). Between batch sizes the curve may bend anywhere, so there the range allows bends that the fit has no need of.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from batchlab.analysis.interval import Interval

MIN_EFFICIENCY = 0.8
"""Scaling is perfect while this share of the examples is of use."""

MAX_EXCESS = 0.25
"""Nothing much is left to save once the steps exceed the fewest by no more than this."""

PERFECT_SLOPE, FLAT_SLOPE = 0.8, 0.2
"""How steeply log S must fall at the smallest batch size, and how little at the largest, for a regime to be seen there:
as the hyperbola does where its regimes end."""

_BENDS = 4
"""Places between two batch sizes where the curve may bend, for ranges."""

_ROUNDING = 1e-6
_STRICT = 1e3
"""The weight of an equation among the squares."""

_HALVINGS = 10

Equation = tuple[np.ndarray, float]
"""Coefficients of the p_j, and what they must add up to."""

_FALL = -math.log(MIN_EFFICIENCY)
_RISE = math.log(1 + MAX_EXCESS)


@dataclass(frozen=True)
class ShapeCurve:
    """The fitted curve: log steps at the batch sizes, straight between them."""

    log_sizes: np.ndarray  # [num_batch_sizes], ascending
    log_curve: np.ndarray  # [num_batch_sizes]
    residuals: np.ndarray  # [num_batch_sizes]
    num_bends: int
    """How many of the p_j are positive."""

    @property
    def degrees_of_freedom(self) -> int:
        """What height and bends leave of the data; a bend is placed where it fits, so it takes half as much again."""
        return math.floor(len(self.log_sizes) - 1 - 1.5 * self.num_bends)

    @property
    def log_steps(self) -> np.ndarray:
        """What was fitted."""
        return np.asarray(self.log_curve + self.residuals)

    @property
    def shows_perfect(self) -> bool:
        """Whether the curve begins with perfect scaling; if not, its first point is no more than a reference."""
        return self._fall(0) > PERFECT_SLOPE

    @property
    def shows_maximal(self) -> bool:
        """Whether the curve has flattened at its end; if not, the fewest steps are still to come."""
        return self._fall(-2) < FLAT_SLOPE

    def _fall(self, i: int) -> float:
        return float((self.log_curve[i] - self.log_curve[i + 1]) / (self.log_sizes[i + 1] - self.log_sizes[i]))

    def efficiency(self) -> np.ndarray:
        """Return the share of the examples of use at each batch size, relative to the smallest."""
        examples = self.log_sizes + self.log_curve
        return np.asarray(np.exp(examples[0] - examples))

    def end_of_perfect(self) -> float | None:
        """Return the batch size at which efficiency falls to 0.8; None where it does not."""
        lost = self.log_sizes + self.log_curve - (self.log_sizes[0] + self.log_curve[0])
        return math.exp(np.interp(_FALL, lost, self.log_sizes)) if lost[-1] > _FALL else None

    def start_of_maximal(self) -> float | None:
        """Return the batch size from which on steps exceed the fewest by 25 % at the most; None where all do."""
        excess = self.log_curve - self.log_curve[-1]
        return math.exp(np.interp(_RISE, excess[::-1], self.log_sizes[::-1])) if excess[0] > _RISE else None


def fit_shape(batch_sizes: np.ndarray, steps: np.ndarray) -> ShapeCurve:
    """Return the least-squares curve through ascending batch sizes.

    >>> curve = fit_shape(np.array([1.0, 2.0, 4.0, 8.0, 16.0]), np.array([800.0, 400.0, 200.0, 200.0, 200.0]))
    >>> np.exp(curve.log_curve).round().tolist()
    [800.0, 400.0, 200.0, 200.0, 200.0]
    >>> round(curve.end_of_perfect(), 2), round(curve.start_of_maximal(), 2)
    (5.0, 3.2)
    """
    log_sizes, log_steps = np.log(batch_sizes), np.log(steps)
    bends, residuals = _solve(log_sizes, log_steps, log_sizes[1:])
    return ShapeCurve(log_sizes, log_steps - residuals, residuals, int((bends > 1e-9).sum()))


@dataclass(frozen=True)
class ShapeRanges:
    """What the curve may be, given the noise: 95 % ranges by asking for one more equation."""

    curve: ShapeCurve
    allowance: float
    """By how much the sum of squares may rise."""

    def end_of_perfect(self) -> Interval:
        """Return the range of the batch size at which efficiency falls to 0.8.

        Open above where it may not fall so far, and below where scaling may not be perfect even at the smallest.
        """
        first, last = self._ends
        value = self.curve.end_of_perfect()
        found = self._range(first + _FALL, last, value, lambda x: (self._row(x), _FALL - (x - first)))
        is_seen = self.curve.shows_perfect and not self._is_allowed((np.ones(len(self._bends)), PERFECT_SLOPE))
        return found if is_seen else Interval(None, found.high)

    def start_of_maximal(self) -> Interval:
        """Return the range of the batch size from which on steps exceed the fewest by 25 % at the most.

        Open below where all may, and above where the steps may still be falling at the largest batch size.
        """
        first, last = self._ends
        value = self.curve.start_of_maximal()
        found = self._range(first, last - _RISE, value, lambda x: (self._row(x) - self._row(last), _RISE))
        is_last = np.arange(len(self._bends)) == len(self._bends) - 1
        is_seen = self.curve.shows_maximal and not self._is_allowed((is_last.astype(float), FLAT_SLOPE))
        return found if is_seen else Interval(found.low, None)

    def efficiency(self, batch_size: float) -> Interval:
        """Return the range of the efficiency at a batch size, relative to the smallest."""
        x = math.log(batch_size)
        span = x - self._ends[0]
        if span == 0:
            return Interval(1.0, 1.0)
        value = float(np.exp(np.interp(x, self.curve.log_sizes, np.log(self.curve.efficiency()))))
        found = self._range(-span, 0.0, value, lambda log_share: (self._row(x), -span - log_share), places=13)
        return Interval(found.low or math.exp(-span), found.high or 1.0)

    def _row(self, x: float) -> np.ndarray:
        """Return the coefficients of the p_j in log S at `x`, less a."""
        return np.asarray(self._ends[0] - np.minimum(x, self._bends))

    @property
    def _ends(self) -> tuple[float, float]:
        return float(self.curve.log_sizes[0]), float(self.curve.log_sizes[-1])

    @cached_property
    def _bends(self) -> np.ndarray:
        shares = np.arange(1, _BENDS + 1) / _BENDS
        places = self.curve.log_sizes
        return np.asarray(places[:-1, None] + np.diff(places)[:, None] * shares).ravel()

    def _rise(self, equation: Equation) -> float:
        """Return by how much the squares rise under an equation; infinite where no curve obeys it."""
        bends, residuals = _solve(self.curve.log_sizes, self.curve.log_steps, self._bends, equation)
        if abs(float(equation[0] @ bends) - equation[1]) > 1e-3:
            return math.inf
        return float(residuals @ residuals) - self._least

    @cached_property
    def _least(self) -> float:
        _, residuals = _solve(self.curve.log_sizes, self.curve.log_steps, self._bends)
        return float(residuals @ residuals)

    def _range(
        self,
        first: float,
        last: float,
        value: float | None,
        equation: Callable[[float], Equation],
        places: int = 33,
    ) -> Interval:
        """Return the ends, as powers of e, of what is allowed in [first, last]; None where the first or last itself is.

        The `value` read off the curve is among the places that are tried first.
        """
        inside = [] if value is None else [min(max(math.log(value), first), last)]
        tried = np.sort([*np.linspace(first, last, places), *inside])
        rises = np.array([self._rise(equation(x)) for x in tried])
        allowed = np.flatnonzero(rises <= max(self.allowance, float(rises.min())) + _ROUNDING)
        lowest, highest = int(allowed[0]), int(allowed[-1])

        def edge(inside: int, outside: int) -> float | None:
            if not 0 <= outside < len(tried):
                return None
            return math.exp(_bisect(lambda x: self._is_allowed(equation(x)), tried[inside], tried[outside]))

        return Interval(edge(lowest, lowest - 1), edge(highest, highest + 1))

    def _is_allowed(self, equation: Equation) -> bool:
        return self._rise(equation) <= self.allowance + _ROUNDING


def _bisect(is_allowed: Callable[[float], bool], inside: float, outside: float) -> float:
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_allowed(middle) else (inside, middle)
    return float(inside)


def _solve(
    log_sizes: np.ndarray, log_steps: np.ndarray, bends: np.ndarray, equation: Equation | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the p_j at these bends and the residuals of log steps; the height a is a mean."""
    from scipy.optimize import nnls

    columns = -(np.minimum(log_sizes[:, None], bends) - log_sizes[0])
    columns = columns - columns.mean(axis=0)
    target = log_steps - log_steps.mean()
    # The slope has one share more, which is not used: all shares are one.
    rows = [np.column_stack([columns, np.zeros(len(target))]), _STRICT * np.ones((1, len(bends) + 1))]
    sides = [target, [_STRICT]]
    if equation is not None:
        rows.append(_STRICT * np.append(equation[0], 0.0)[None, :])
        sides.append([_STRICT * equation[1]])
    shares, _ = nnls(np.vstack(rows), np.concatenate(sides), maxiter=100 * (len(bends) + 1))
    return shares[:-1], target - columns @ shares[:-1]
