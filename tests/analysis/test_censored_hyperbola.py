from __future__ import annotations

import numpy as np
import pytest

from batchlab.analysis import fit_hyperbola
from batchlab.analysis.censored_hyperbola import fit_censored_hyperbola

SIZES = np.array([16.0, 64, 256, 1024, 4096])


def test_without_a_censored_point_it_is_least_squares():
    steps = (100 + 15_000 / SIZES) * np.array([1.1, 0.95, 1.02, 0.9, 1.06])
    plain, found = fit_hyperbola(SIZES, steps), fit_censored_hyperbola(SIZES, steps, np.zeros(5, dtype=bool))

    assert pytest.approx((plain.s_min, plain.e_min), rel=1e-6) == (found.s_min, found.e_min)
    np.testing.assert_allclose(found.residuals, plain.residuals, atol=1e-6)


def test_a_point_censored_far_below_the_curve_says_next_to_nothing():
    steps = (100 + 15_000 / SIZES) * np.array([1.1, 0.95, 1.02, 0.9, 0.5])
    is_late = np.arange(5) == 4
    plain, found = fit_hyperbola(SIZES[:4], steps[:4]), fit_censored_hyperbola(SIZES, steps, is_late)

    assert pytest.approx(plain.b_crit, rel=0.01) == found.b_crit


def test_a_point_censored_above_the_curve_pulls_it_up():
    steps = (100 + 15_000 / SIZES) * np.array([1.1, 0.95, 1.02, 0.9, 1.3])
    is_late = np.arange(5) == 4

    assert fit_censored_hyperbola(SIZES, steps, is_late).s_min > fit_hyperbola(SIZES[:4], steps[:4]).s_min


def test_it_is_right_where_leaving_them_out_is_not():
    """statistics.md, 2: with three trials a batch size dropping them is 17 % too high, the likelihood right to 2 %."""
    rng = np.random.default_rng(0)
    curve = np.log(1000 * (1 + 150 / SIZES))
    limits = np.where(SIZES >= 1024, curve - 0.246, np.inf)  # the median of the smallest of three z times 0.3
    dropped, kept = [], []
    for _ in range(200):
        log_steps = (curve[:, None] + 0.3 * rng.standard_normal((5, 3))).min(axis=1)
        is_late = log_steps > limits
        steps = np.exp(np.minimum(log_steps, limits))
        dropped.append(fit_hyperbola(SIZES[~is_late], steps[~is_late]).b_crit)
        kept.append(fit_censored_hyperbola(SIZES, steps, is_late).b_crit if is_late.any() else dropped[-1])

    assert np.median(dropped) / 150 > 1.1
    assert pytest.approx(np.median(kept) / 150, abs=0.05) == 1
