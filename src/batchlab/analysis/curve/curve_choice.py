"""Does the hyperbola hold? A test with the noise in mind, of the two ways in which real curves leave it.

A knee is sharper than the hyperbola, S^p = S_min^p + (E_min / B)^p with p > 1; a soft curve falls more slowly than
1 / B, S = S_min + (E_min / B)^a with a < 1. Each is one direction away from the fitted curve. If what a direction
explains of the residuals exceeds the scatter that is left by 1.5 times, the shape-constrained curve is the better one
to read the regimes off. Towards the knee 0.75 times is enough: noise hides one more easily, and then the fit puts both
ends two octaves off. That is a choice, and claims nothing: simulated at 15 % noise with 13 batch sizes it keeps six in
ten true hyperbolas, one in a thousand knees and hardly a soft curve; the worst residual or AIC alone would reject 73 %
of true hyperbolas.

That the hyperbola does not hold is said only where the same quantity is larger than chance makes it: an F test of each
direction, at 5 % for both together.
"""

from __future__ import annotations

import math

import numpy as np

from batchlab.analysis.curve.hyperbola import Hyperbola

MAX_RATIO = 1.5
"""How much more than its share of the scatter one direction may explain."""

MAX_KNEE_RATIO = 0.75
"""The same where what it explains is a knee: residuals that lie as one has them, not the other way."""

LEVEL = 0.05
"""The share of true hyperbolas that `departs` may take for something else."""

MIN_NOISE = 0.01
"""Steps are whole numbers, read on a grid: a departure of one per cent shows nothing."""


def is_hyperbolic(batch_sizes: np.ndarray, hyperbola: Hyperbola, noise: float = 0.0, is_exact: bool = False) -> bool:
    """Return whether the residuals of a fit show neither a knee nor a soft curve beyond the noise.

    `noise` is the standard deviation of log steps where it is known, a floor of the scatter. Three batch sizes
    cannot tell: the fit goes through all of them as well as it can. In exact steps there is no noise to hide a knee.

    >>> from batchlab.analysis import fit_hyperbola
    >>> sizes = 2.0 ** np.arange(10)
    >>> is_hyperbolic(sizes, fit_hyperbola(sizes, 100 * (1 + 20 / sizes)))
    True
    >>> is_hyperbolic(sizes, fit_hyperbola(sizes, 100 * np.maximum(1, 20 / sizes)))
    False
    """
    if len(batch_sizes) < 4:
        return True
    knee, soft = _ratios(batch_sizes, hyperbola, noise)
    return knee <= (MAX_RATIO if is_exact else MAX_KNEE_RATIO) and max(abs(knee), abs(soft)) <= MAX_RATIO


def departs(batch_sizes: np.ndarray, hyperbola: Hyperbola, noise: float = 0.0) -> bool:
    """Return whether the residuals of a fit leave the hyperbola by more than chance explains.

    >>> from batchlab.analysis import fit_hyperbola
    >>> sizes = 2.0 ** np.arange(10)
    >>> departs(sizes, fit_hyperbola(sizes, 100 * np.maximum(1, 20 / sizes)))
    True
    """
    from scipy.special import fdtri  # slow to import

    freedom = len(batch_sizes) - 3
    if freedom < 1:
        return False
    ratios = _ratios(batch_sizes, hyperbola, noise)
    return max(map(abs, ratios)) > float(fdtri(1, freedom, 1 - LEVEL / len(ratios)))


def _ratios(batch_sizes: np.ndarray, hyperbola: Hyperbola, noise: float) -> list[float]:
    """Return the ratios of the knee and of the soft curve, for four batch sizes or more."""
    return [_ratio(hyperbola.residuals, way, noise) for way in _directions(batch_sizes, hyperbola)]


def _directions(batch_sizes: np.ndarray, hyperbola: Hyperbola) -> list[np.ndarray]:
    """Return the change of log S towards a knee and towards a soft curve, less what S_min and B_crit can do."""
    distance = math.log(hyperbola.b_crit) - np.log(batch_sizes)
    share = 1 / (1 + np.exp(-distance))
    basis, _ = np.linalg.qr(np.stack([np.ones_like(share), share], axis=1))
    ways = [share * distance - np.logaddexp(0, distance), -share * distance]
    return [way - basis @ (basis.T @ way) for way in ways]


def _ratio(residuals: np.ndarray, way: np.ndarray, noise: float) -> float:
    """Return how many times its share of the scatter a direction explains, below zero where residuals lie against it.

    >>> round(_ratio(np.array([-0.3, 0.0, 0.0, 0.1]), np.array([1.0, 0, 0, 0]), noise=0.0), 6)  # 0.3^2 / 0.1^2
    -9.0
    """
    length = float(way @ way)
    if length < 1e-12:
        return 0.0
    along = float(residuals @ way)
    explained = along**2 / length
    left = max(float(residuals @ residuals) - explained, 0.0) / (len(residuals) - 3)
    return math.copysign(explained, along) / max(left, noise**2, MIN_NOISE**2)
