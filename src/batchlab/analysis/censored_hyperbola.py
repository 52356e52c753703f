"""The hyperbola through steps of which some are only known to be more than were trained: a Tobit likelihood.

Leaving such batch sizes out keeps the lucky ones: simulated with three trials a batch size, it puts the critical batch
size 17 % too high, where this likelihood is right to 2 %. log S is taken as normal about the curve; a censored batch
size contributes the probability that it lies beyond the step to which it trained.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from batchlab.analysis.hyperbola import Hyperbola, fit_hyperbola, log_b_crit_grid

_MIN_SIGMA = 1e-4
"""Steps are whole numbers on a grid of evaluations: noise is never taken to be less."""

_MAX_ROUNDS = 200


def fit_censored_hyperbola(batch_sizes: np.ndarray, steps: np.ndarray, is_censored: np.ndarray) -> Hyperbola:
    """Return the most likely hyperbola; `steps` are those trained where `is_censored`, and three or more are not.

    The standard error is that of the likelihood, with the degrees of freedom of the known steps.

    >>> sizes = np.array([16.0, 64.0, 256.0, 1024.0, 4096.0])
    >>> steps = np.array([3310.0, 890.0, 305.0, 149.0, 140.0])
    >>> is_late = np.array([False, False, False, False, True])
    >>> fit = fit_censored_hyperbola(sizes, steps, is_late)
    >>> round(fit_hyperbola(sizes[:4], steps[:4]).b_crit), round(fit.b_crit)
    (513, 409)
    """
    likelihood = _Likelihood(np.log(batch_sizes), np.log(steps), is_censored)
    known = ~is_censored
    starts = [fit_hyperbola(batch_sizes[known], steps[known]), fit_hyperbola(batch_sizes, steps)]
    best = max((likelihood.climb(start) for start in starts), key=likelihood.value)
    residuals = likelihood.residuals(best)[known]
    s_min = math.exp(best[0])
    return Hyperbola(s_min, s_min * math.exp(best[1]), likelihood.log_se(best), residuals)


@dataclass(frozen=True)
class _Likelihood:
    """The log likelihood of q = (log S_min, log B_crit, log sigma), up to a constant."""

    log_sizes: np.ndarray  # [num_batch_sizes]
    log_steps: np.ndarray  # [num_batch_sizes]
    is_censored: np.ndarray  # [num_batch_sizes]

    def residuals(self, q: np.ndarray) -> np.ndarray:
        return np.asarray(self.log_steps - q[0] - np.logaddexp(0, q[1] - self.log_sizes))

    def value(self, q: np.ndarray) -> float:
        from scipy.special import log_ndtr

        z = self.residuals(q) / math.exp(q[2])
        return float(np.where(self.is_censored, log_ndtr(-z), -0.5 * z**2 - q[2]).sum())

    def derivatives(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient, and the information without the curvature of the hyperbola."""
        sigma = math.exp(q[2])
        z = self.residuals(q) / sigma
        pull, weight = self._pull(z)
        slope = 1 / (1 + np.exp(self.log_sizes - q[1]))
        columns = np.stack([np.ones_like(z), slope], axis=1) / sigma
        information = np.empty((3, 3))
        information[:2, :2] = (columns * weight[:, None]).T @ columns
        information[:2, 2] = information[2, :2] = columns.T @ (weight * z + pull)
        information[2, 2] = (weight * z**2 + pull * z).sum()
        return np.array([*(columns.T @ pull), (pull * z - ~self.is_censored).sum()]), information

    def _pull(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return minus the first and minus the second derivative of each point's log likelihood in z."""
        from scipy.special import log_ndtr

        hazard = np.exp(-0.5 * z**2 - 0.5 * math.log(2 * math.pi) - log_ndtr(-z))
        is_censored = self.is_censored
        return np.where(is_censored, hazard, z), np.where(is_censored, hazard * (hazard - z), 1.0)

    def climb(self, start: Hyperbola) -> np.ndarray:
        """Return the top that scoring steps reach, halved until they help."""
        grid = log_b_crit_grid(self.log_sizes)
        lowest = np.array([-np.inf, grid[0], math.log(_MIN_SIGMA)])
        highest = np.array([np.inf, grid[-1], np.inf])
        spread = max(float(np.std(start.residuals)), 10 * _MIN_SIGMA)
        best = np.array([math.log(start.s_min), math.log(start.b_crit), math.log(spread)])
        top = self.value(best)
        for _ in range(_MAX_ROUNDS):
            gradient, information = self.derivatives(best)
            step = np.linalg.pinv(information) @ gradient
            while np.abs(step).max() > 1e-9:
                tried = np.clip(best + step, lowest, highest)
                found = self.value(tried)
                if found > top:
                    best, top = tried, found
                    break
                step = step / 2
            else:
                break
        return best

    def log_se(self, q: np.ndarray) -> float:
        """Return the standard error of log B_crit, the known residuals being free in all but two directions."""
        _, information = self.derivatives(q)
        known = int((~self.is_censored).sum())
        variance = max(float(np.linalg.pinv(information)[1, 1]), 0.0)
        return math.sqrt(variance * known / (known - 2))
