"""The hyperbola S = S_min + E_min / B through steps against batch size, and a freer curve to hold it against.

S_min is the number of steps with an unlimited batch, E_min the number of examples with the smallest, and
they meet at the critical batch size B_crit = E_min / S_min, where a run takes twice S_min steps and twice
E_min examples. Curves are fitted to log S, because noise in steps is relative (measurements.md, 2.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from batchlab.analysis.interval import NO_INTERVAL, Interval

SPAN = 1e3
"""Data tell no more than this factor: how far S_min may lie below the fewest steps, E_min below the fewest
examples, and an interval from its middle."""

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
    """log S minus log of the curve."""

    @property
    def b_crit(self) -> float:
        """The critical batch size E_min / S_min."""
        return self.e_min / self.s_min

    def b_crit_interval(self) -> Interval:
        """Return the delta method's 95 % interval of B_crit, with Student's t for n - 2 degrees of freedom."""
        from scipy.special import stdtrit

        width = float(stdtrit(len(self.residuals) - 2, 0.975)) * self.log_se
        if width > math.log(SPAN):
            return NO_INTERVAL
        return Interval(self.b_crit * math.exp(-width), self.b_crit * math.exp(width))


@dataclass(frozen=True)
class PowerLaw:
    """The three-parameter alternative S = S_min + (E_min / B)^exponent."""

    s_min: float
    e_min: float
    exponent: float
    aic_difference: float
    """AIC of this curve minus that of the hyperbola: positive where the hyperbola explains the data better."""


def fit_hyperbola(
    batch_sizes: np.ndarray, steps: np.ndarray, start: tuple[float, float] | None = None, tolerance: float = 1e-14
) -> Hyperbola:
    """Return the least-squares hyperbola of log steps through three points or more.

    `start` is a guess of (S_min, E_min); without one, the fewest steps and the fewest examples.

    >>> fit = fit_hyperbola(np.array([64.0, 512.0, 4096.0]), np.array([900.0, 200.0, 112.5]))
    >>> round(fit.s_min, 6), round(fit.e_min, 6)
    (100.0, 51200.0)
    """
    log_sizes, log_steps = np.log(batch_sizes), np.log(steps)
    fewest = np.array([log_steps.min(), (log_sizes + log_steps).min()])

    def residuals(q: np.ndarray) -> np.ndarray:
        return np.asarray(np.logaddexp(q[0], q[1] - log_sizes) - log_steps)

    def jacobian(q: np.ndarray) -> np.ndarray:
        share = 1 / (1 + np.exp(q[1] - q[0] - log_sizes))
        return np.stack([share, 1 - share], axis=1)

    q = _least_squares(residuals, jacobian, np.log(start) if start else fewest, fewest - np.log(SPAN), tolerance)
    s_min, e_min = np.exp(q)
    error = residuals(q)
    return Hyperbola(float(s_min), float(e_min), _log_se(jacobian(q), error), -error)


def fit_power_law(batch_sizes: np.ndarray, steps: np.ndarray, hyperbola: Hyperbola) -> PowerLaw | None:
    """Return the alternative curve, fitted from the hyperbola on; None for fewer than four points.

    >>> sizes = np.array([16.0, 64.0, 256.0, 1024.0])
    >>> steps = 100 + (5000 / sizes) ** 0.7
    >>> round(fit_power_law(sizes, steps, fit_hyperbola(sizes, steps)).exponent, 3)
    0.7
    """
    if len(batch_sizes) < 4:
        return None
    log_sizes, log_steps = np.log(batch_sizes), np.log(steps)

    def residuals(q: np.ndarray) -> np.ndarray:
        return np.asarray(np.logaddexp(q[0], q[2] * (q[1] - log_sizes)) - log_steps)

    def jacobian(q: np.ndarray) -> np.ndarray:
        share = 1 / (1 + np.exp(q[0] - q[2] * (q[1] - log_sizes)))
        return np.stack([1 - share, share * q[2], share * (q[1] - log_sizes)], axis=1)

    start = np.array([np.log(hyperbola.s_min), np.log(hyperbola.e_min), 1.0])
    lowest = np.array([log_steps.min() - np.log(SPAN), -np.inf, 0.05])
    q = _least_squares(residuals, jacobian, start, lowest, 1e-10)
    difference = _aic(residuals(q), 3) - _aic(hyperbola.residuals, 2)
    return PowerLaw(float(np.exp(q[0])), float(np.exp(q[1])), float(q[2]), difference)


def _least_squares(
    residuals: Callable[[np.ndarray], np.ndarray],
    jacobian: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    lowest: np.ndarray,
    tolerance: float,
) -> np.ndarray:
    from scipy.optimize import least_squares  # here, because it takes longer to import than all of analysis

    start = np.maximum(start, lowest)
    solution = least_squares(
        residuals, start, jac=jacobian, bounds=(lowest, np.inf), xtol=tolerance, ftol=tolerance, gtol=tolerance
    )
    return np.asarray(solution.x)


def _log_se(jacobian: np.ndarray, residuals: np.ndarray) -> float:
    """Return the standard error of q2 - q1 = log B_crit."""
    variance = residuals @ residuals / (len(residuals) - 2)
    covariance = variance * np.linalg.pinv(jacobian.T @ jacobian)
    return float(np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]))


def _aic(residuals: np.ndarray, num_parameters: int) -> float:
    mean_square = max(float(np.mean(residuals**2)), _ROUNDING)
    return len(residuals) * float(np.log(mean_square)) + 2 * num_parameters
