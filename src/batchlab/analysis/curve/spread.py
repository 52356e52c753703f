"""How far the steps of one more batch size may lie from a fitted hyperbola."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from batchlab.analysis.curve.b_crit_interval import quantile
from batchlab.analysis.curve.hyperbola import Hyperbola


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The scatter about the curve and the error of the curve itself, in logarithms."""

    scatter: float
    """Standard deviation of log steps about the curve."""

    num_sizes: int
    log_b_crit_se: float
    b_crit: float
    mean_slope: float
    """Of log S against log B_crit, over the fitted batch sizes."""

    @classmethod
    def of(cls, hyperbola: Hyperbola, batch_sizes: Sequence[int] | np.ndarray) -> Spread:
        """Return that of a fit through known steps at three batch sizes or more."""
        sizes = np.array(batch_sizes, dtype=float)
        return cls(
            scatter=hyperbola.scatter,
            num_sizes=len(sizes),
            log_b_crit_se=hyperbola.log_se,
            b_crit=hyperbola.b_crit,
            mean_slope=float(np.mean(_slope(hyperbola.b_crit, sizes))),
        )

    def half_width(self, batch_size: float) -> float:
        """Return half the width of the 95 % interval of log steps that tuning this batch size would find.

        The fit is one of a level and of log B_crit, which are independent: the level has the error of a mean, and
        log B_crit moves the curve by its slope less the mean slope (the delta method).
        """
        curve = (float(_slope(self.b_crit, np.array(batch_size))) - self.mean_slope) * self.log_b_crit_se
        variance = self.scatter**2 * (1 + 1 / self.num_sizes) + curve**2
        return quantile(self.num_sizes) * math.sqrt(variance)


def _slope(b_crit: float, batch_sizes: np.ndarray) -> np.ndarray:
    """Return the derivative of log(1 + B_crit / B) in log B_crit."""
    return np.asarray(b_crit / (b_crit + batch_sizes))
