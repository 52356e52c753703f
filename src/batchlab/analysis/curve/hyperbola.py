"""The hyperbola S = S_min + E_min / B through steps against batch size, and a freer curve to hold it against.

S_min is the number of steps with an unlimited batch, E_min the number of examples with the smallest, and
they meet at the critical batch size B_crit = E_min / S_min, where a run takes twice S_min steps and twice
E_min examples. Curves are fitted to log S, because noise in steps is relative.

log S = log S_min + log(1 + B_crit / B): for a given B_crit the rest is a mean, so the fit is a search in one dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from batchlab.analysis.curve.b_crit_interval import NORMAL_QUANTILE, b_crit_interval, log_b_crit_grid, quantile
from batchlab.analysis.interval import NO_INTERVAL, SPAN, Interval

_ROUNDING = 1e-20
"""Mean squared log residual below which a fit is exact, and no better than another exact one."""


@dataclass(frozen=True)
class Hyperbola:
    """The fitted S_min and E_min, and how well they fit."""

    s_min: float
    e_min: float
    log_se: float
    """Standard error of log B_crit, by the delta method."""

    residuals: np.ndarray  # [num_batch_sizes]
    """log S minus log of the curve, where S is known."""

    interval: Interval = NO_INTERVAL
    """95 %, of B_crit."""

    noise: float = 0.0
    """What log steps scatter at the least, as a standard deviation, however close to the curve they happen to lie."""

    @property
    def b_crit(self) -> float:
        """The critical batch size E_min / S_min."""
        return self.e_min / self.s_min

    @property
    def scatter(self) -> float:
        """Standard deviation of log steps about the curve."""
        return math.sqrt(scatter_variance(self.residuals, self.noise))

    def steps_at(self, batch_size: float) -> float:
        """Return the steps of the curve at a batch size."""
        return self.s_min + self.e_min / batch_size


@dataclass(frozen=True)
class PowerLaw:
    """The three-parameter alternative S = S_min + (E_min / B)^exponent."""

    s_min: float
    e_min: float
    exponent: float
    aic_difference: float
    """AIC of this curve minus that of the hyperbola, +2 at the most, for the one parameter more.

    From few batch sizes it says little: below -2 for a quarter of true hyperbolas with five, for 9 % with thirteen.
    """


def fit_hyperbola(batch_sizes: np.ndarray, steps: np.ndarray, noise: float = 0.0) -> Hyperbola:
    """Return the least-squares hyperbola of log steps through three points or more.

    `noise` is what they are known to scatter at the least: read on a coarse grid, a few lie on a curve by chance.

    >>> fit = fit_hyperbola(np.array([64.0, 512.0, 4096.0]), np.array([900.0, 200.0, 112.5]))
    >>> round(fit.s_min, 6), round(fit.e_min, 6)
    (100.0, 51200.0)
    """
    log_sizes, log_steps = np.log(batch_sizes), np.log(steps)
    log_b_crit = _descend(log_sizes, log_steps)
    excess, slope = _centred_excess(log_sizes, log_b_crit)
    residuals = log_steps - log_steps.mean() - excess
    s_min = math.exp(float(np.mean(log_steps - np.log1p(np.exp(log_b_crit - log_sizes)))))
    variance, information = scatter_variance(residuals, noise), float(slope @ slope)
    log_se = math.sqrt(variance / information) if information > 0 else math.inf

    def deviances(log_b_crits: np.ndarray) -> np.ndarray:
        more = sums_of_squares(log_sizes, log_steps, log_b_crits) - float(residuals @ residuals)
        least = (len(residuals) - 2) * max(variance, _ROUNDING)  # some curves go through every point
        return np.asarray(len(residuals) * np.log1p(np.maximum(more, 0.0) / least))

    interval = b_crit_interval(log_b_crit, log_se, log_sizes, deviances)
    return Hyperbola(s_min, s_min * math.exp(log_b_crit), log_se, residuals, interval, noise)


def fit_power_law(batch_sizes: np.ndarray, steps: np.ndarray) -> PowerLaw | None:
    """Return the alternative curve, fitted from the hyperbola of the same points on; None for fewer than four.

    >>> sizes = np.array([16.0, 64.0, 256.0, 1024.0])
    >>> steps = 100 + (5000 / sizes) ** 0.7
    >>> round(fit_power_law(sizes, steps).exponent, 3)
    0.7
    """
    if len(batch_sizes) < 4:
        return None
    log_sizes, log_steps, hyperbola = np.log(batch_sizes), np.log(steps), fit_hyperbola(batch_sizes, steps)

    def residuals(q: np.ndarray) -> np.ndarray:
        return np.asarray(np.logaddexp(q[0], q[2] * (q[1] - log_sizes)) - log_steps)

    def jacobian(q: np.ndarray) -> np.ndarray:
        share = np.exp(-np.logaddexp(0, q[0] - q[2] * (q[1] - log_sizes)))
        return np.stack([1 - share, share * q[2], share * (q[1] - log_sizes)], axis=1)

    start = np.array([np.log(hyperbola.s_min), np.log(hyperbola.e_min), 1.0])
    lowest = np.array([log_steps.min() - np.log(SPAN), -np.inf, 0.05])
    q = _least_squares(residuals, jacobian, start, lowest)
    difference = _aic(residuals(q), 3) - _aic(hyperbola.residuals, 2)
    return PowerLaw(float(np.exp(q[0])), float(np.exp(q[1])), float(q[2]), difference)


def sums_of_squares(log_sizes: np.ndarray, log_steps: np.ndarray, log_b_crits: np.ndarray) -> np.ndarray:
    """Return the least sum of squared residuals for each given log B_crit.

    >>> sizes, steps = np.array([64.0, 512.0, 4096.0]), np.array([900.0, 200.0, 112.5])
    >>> sums_of_squares(np.log(sizes), np.log(steps), np.log([512.0, 51.2])).round(3).tolist()
    [0.0, 1.176]
    """
    excess, _ = _centred_excess(log_sizes, log_b_crits[:, None])
    return np.asarray(((log_steps - log_steps.mean() - excess) ** 2).sum(axis=1))


def _centred_excess(log_sizes: np.ndarray, log_b_crit: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log(1 + B_crit / B) less its mean over batch sizes, and its derivative in log B_crit."""
    excess = np.logaddexp(0, log_b_crit - log_sizes)
    slope = 1 - np.exp(-excess)
    return excess - excess.mean(axis=-1, keepdims=True), slope - slope.mean(axis=-1, keepdims=True)


def _descend(log_sizes: np.ndarray, log_steps: np.ndarray) -> float:
    """Return the best log B_crit: the best of a grid, then Newton steps that are halved until they help."""
    grid = log_b_crit_grid(log_sizes)  # the sum of squares may have more than one valley
    sums = sums_of_squares(log_sizes, log_steps, grid)
    best, least = float(grid[sums.argmin()]), float(sums.min())
    for _ in range(100):
        step = _newton_step(log_sizes, log_steps, best)
        while abs(step) > 1e-14:
            tried = float(np.clip(best + step, grid[0], grid[-1]))
            found = float(sums_of_squares(log_sizes, log_steps, np.array([tried]))[0])
            if found < least:
                break
            step = step / 2 if abs(step) > 1e-6 else 0.0  # below, sums differ by rounding alone
        else:
            return best
        best, least = tried, found
    return best


def _newton_step(log_sizes: np.ndarray, log_steps: np.ndarray, log_b_crit: float) -> float:
    """Return the step to where the sum of squares is flat; downhill where it is not convex."""
    excess, slope = _centred_excess(log_sizes, log_b_crit)
    residuals = log_steps - log_steps.mean() - excess
    share = 1 / (1 + np.exp(log_sizes - log_b_crit))
    curvature = float(slope @ slope - residuals @ (share * (1 - share)))
    downhill = float(slope @ residuals)
    return downhill / (curvature if curvature > 0 else max(float(slope @ slope), 1e-300))


def scatter_variance(residuals: np.ndarray, noise: float = 0.0) -> float:
    """Return the square of the scatter about a curve of two parameters, no less than `noise` accounts for.

    What is seen is an estimate, to be taken Student's t times; noise that is known needs the normal quantile only.
    """
    known = NORMAL_QUANTILE / quantile(len(residuals)) * noise
    return max(float(residuals @ residuals) / (len(residuals) - 2), known**2)


def _least_squares(
    residuals: Callable[[np.ndarray], np.ndarray],
    jacobian: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    lowest: np.ndarray,
) -> np.ndarray:
    from scipy.optimize import least_squares  # here, because it takes longer to import than all of analysis

    start = np.maximum(start, lowest)
    solution = least_squares(
        residuals, start, jac=jacobian, bounds=(lowest, np.inf), xtol=1e-10, ftol=1e-10, gtol=1e-10
    )
    return np.asarray(solution.x)


def _aic(residuals: np.ndarray, num_parameters: int) -> float:
    mean_square = max(float(np.mean(residuals**2)), _ROUNDING)
    return len(residuals) * float(np.log(mean_square)) + 2 * num_parameters
