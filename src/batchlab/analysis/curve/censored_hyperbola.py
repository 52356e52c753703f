"""The hyperbola through steps of which some are only known to be more than were trained: a Tobit likelihood.

Leaving such batch sizes out keeps the lucky ones: simulated with three trials a batch size, it puts the critical batch
size 17 % too high, where this likelihood is right to 2 %. log S is taken as normal about the curve; a censored batch
size contributes the probability that it lies beyond the step to which it trained.

For a given B_crit the likelihood is concave in log S_min / sigma and 1 / sigma (Olsen 1978), so Newton steps find its
top from anywhere, and the fit is a search in one dimension, as that of the plain hyperbola is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from batchlab.analysis.curve.b_crit_interval import b_crit_interval, log_b_crit_grid
from batchlab.analysis.curve.hyperbola import Hyperbola, scatter_variance

_MIN_SIGMA = 1e-4
"""So much noise is taken to be in log steps beside what is seen: points on a curve would have no likelihood."""

_MAX_ROUNDS = 100
_ZOOMS, _ZOOM_GRID = 8, 21
"""How often the grid about the best log B_crit is made ten times finer, and its points."""


def fit_censored_hyperbola(
    batch_sizes: np.ndarray, steps: np.ndarray, is_censored: np.ndarray, noise: float = 0.0
) -> Hyperbola:
    """Return the most likely hyperbola; `steps` are those trained where `is_censored`, and three or more are not.

    The standard error is that of the likelihood, with the degrees of freedom of the known steps. `noise` is what log
    steps are known to scatter at the least.

    >>> sizes = np.array([16.0, 64.0, 256.0, 1024.0, 4096.0])
    >>> steps = np.array([3310.0, 890.0, 305.0, 149.0, 140.0])
    >>> is_late = np.array([False, False, False, False, True])
    >>> from batchlab.analysis.curve.hyperbola import fit_hyperbola
    >>> fit = fit_censored_hyperbola(sizes, steps, is_late)
    >>> round(fit_hyperbola(sizes[:4], steps[:4]).b_crit), round(fit.b_crit)
    (513, 409)
    """
    likelihood = _Likelihood(np.log(batch_sizes), np.log(steps), is_censored)
    tops = likelihood.climb()
    known = scatter_variance(np.zeros(likelihood.num_known), noise)
    lacking = known * likelihood.freedom - 1 / tops.best[2] ** 2
    if lacking > _MIN_SIGMA**2:
        likelihood = replace(likelihood, min_sigma=math.sqrt(lacking))
        tops = likelihood.climb()
    log_b_crit, level, precision = tops.best
    log_se = likelihood.log_se(log_b_crit, level, precision)

    def deviances(log_b_crits: np.ndarray) -> np.ndarray:
        return np.asarray(2 * (tops.values.max() - likelihood.tops(log_b_crits).values))

    interval = b_crit_interval(log_b_crit, log_se, likelihood.log_sizes[~is_censored], deviances)
    s_min = math.exp(level / precision)
    residuals = (likelihood.excesses(log_b_crit) - level / precision)[~is_censored]
    return Hyperbola(s_min, s_min * math.exp(log_b_crit), log_se, residuals, interval, noise)


@dataclass(frozen=True)
class _Tops:
    """The greatest likelihood for each of several log B_crit, in ascending order, and where it is reached."""

    log_b_crits: np.ndarray  # [num]
    levels: np.ndarray  # [num], log S_min / sigma
    precisions: np.ndarray  # [num], 1 / sigma
    values: np.ndarray  # [num]

    @property
    def best(self) -> tuple[float, float, float]:
        index = int(self.values.argmax())
        return float(self.log_b_crits[index]), float(self.levels[index]), float(self.precisions[index])

    def about_the_best(self, num: int) -> np.ndarray:
        """Return a finer grid from the neighbour of the best on one side to that on the other."""
        index, last = int(self.values.argmax()), len(self.values) - 1
        return np.linspace(self.log_b_crits[max(index - 1, 0)], self.log_b_crits[min(index + 1, last)], num)


@dataclass(frozen=True)
class _Likelihood:
    """The log likelihood, up to a constant; a point's z is precision times excess minus level."""

    log_sizes: np.ndarray  # [num_batch_sizes]
    log_steps: np.ndarray  # [num_batch_sizes]
    is_censored: np.ndarray  # [num_batch_sizes]
    min_sigma: float = _MIN_SIGMA
    """Noise beside what is seen: its square adds to the mean square of the residuals."""

    @property
    def num_known(self) -> int:
        return int((~self.is_censored).sum())

    @property
    def freedom(self) -> float:
        """The share of the known steps that two parameters leave."""
        return (self.num_known - 2) / self.num_known

    def climb(self) -> _Tops:
        """Return the tops about the greatest of all, on a grid as fine as can be told apart."""
        tops = self.tops(log_b_crit_grid(self.log_sizes))
        for _ in range(_ZOOMS):
            tops = self.tops(tops.about_the_best(_ZOOM_GRID))
        return tops

    def excesses(self, log_b_crits: float | np.ndarray) -> np.ndarray:
        """Return log S less log(1 + B_crit / B): [..., num_batch_sizes] for log B_crits [...]."""
        return np.asarray(self.log_steps - np.logaddexp(0, np.asarray(log_b_crits)[..., None] - self.log_sizes))

    def tops(self, log_b_crits: np.ndarray) -> _Tops:
        """Climb to the top for every log B_crit at once, by Newton steps that are shortened while they are long."""
        excess = self.excesses(log_b_crits)
        precision = 1 / np.hypot(excess.std(axis=1), self.min_sigma)
        level = precision * excess.mean(axis=1)
        for _ in range(_MAX_ROUNDS):
            gradient, information = self._derivatives(excess, level, precision)
            step = np.linalg.solve(information, gradient[..., None])[..., 0]
            decrement = np.sqrt(np.maximum((gradient * step).sum(axis=1), 0.0))
            if decrement.max() < 1e-9:
                break
            # A step of length 1 / (1 + decrement) never leaves where the precision is positive.
            step /= np.where(decrement > 0.25, 1 + decrement, 1.0)[:, None]
            level, precision = level + step[:, 0], precision + step[:, 1]
        return _Tops(log_b_crits, level, precision, self._values(excess, level, precision))

    def _values(self, excess: np.ndarray, level: np.ndarray, precision: np.ndarray) -> np.ndarray:
        from scipy.special import log_ndtr

        z = precision[:, None] * excess - level[:, None]
        known = self.num_known * (np.log(precision) - 0.5 * (precision * self.min_sigma) ** 2)
        return np.asarray(np.where(self.is_censored, log_ndtr(-z), -0.5 * z**2).sum(axis=1) + known)

    def _derivatives(
        self, excess: np.ndarray, level: np.ndarray, precision: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients [num, 2] in level and precision, and the information [num, 2, 2]."""
        pull, weight = self._pull(precision[:, None] * excess - level[:, None])
        noise = self.num_known * precision * self.min_sigma**2
        gradient = np.stack(
            [pull.sum(axis=1), self.num_known / precision - noise - (pull * excess).sum(axis=1)], axis=1
        )
        columns = np.stack([np.ones_like(excess), -excess], axis=2)
        information = np.einsum("gnj,gn,gnk->gjk", columns, weight, columns)
        information[:, 1, 1] += self.num_known * (1 / precision**2 + self.min_sigma**2)
        return gradient, information

    def _pull(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return minus the first and minus the second derivative of each point's log likelihood in z."""
        from scipy.special import log_ndtr

        hazard = np.exp(-0.5 * z**2 - 0.5 * math.log(2 * math.pi) - log_ndtr(-z))
        is_censored = self.is_censored
        return np.where(is_censored, hazard, z), np.where(is_censored, hazard * (hazard - z), 1.0)

    def log_se(self, log_b_crit: float, level: float, precision: float) -> float:
        """Return the standard error of log B_crit, the known residuals being free in all but two directions."""
        excess = self.excesses(log_b_crit)
        _, weight = self._pull(precision * excess - level)
        slope = 1 / (1 + np.exp(self.log_sizes - log_b_crit))
        columns = np.stack([np.ones_like(excess), slope, -excess], axis=1)  # [num_batch_sizes, 3]
        information = (columns * weight[:, None]).T @ columns
        information[2, 2] += self.num_known * (1 / precision**2 + self.min_sigma**2)
        if np.linalg.matrix_rank(information, hermitian=True) < 3:
            return math.inf
        variance = float(np.linalg.inv(information)[1, 1]) / precision**2
        return math.sqrt(variance / self.freedom)
