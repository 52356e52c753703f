from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from batchlab.analysis import fit_hyperbola
from batchlab.analysis.curve.censored_hyperbola import fit_censored_hyperbola

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
    """With three trials a batch size dropping them is 17 % too high, the likelihood right to 2 %."""
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


def slow_log_likelihood(q, steps, sizes, is_late):
    """The likelihood as one would write it down, of (log S_min, log B_crit, log sigma)."""
    z = (np.log(steps) - q[0] - np.log1p(np.exp(q[1] - np.log(sizes)))) / np.exp(q[2])
    return np.where(is_late, norm.logsf(z), norm.logpdf(z) - q[2]).sum()


@pytest.mark.parametrize(
    ("sizes", "steps", "is_late"),
    [
        (SIZES, [3347, 677, 283, 102, 173], [0, 0, 0, 1, 1]),
        (SIZES, [3574, 944, 287, 105, 103], [0, 0, 0, 1, 1]),
        ([16, 64, 256, 1024, 4096, 16384], [3166, 393, 176, 150, 113, 118], [1, 1, 1, 0, 0, 0]),
        ([16, 64, 256, 1024, 4096, 16384, 65536], [3121, 795, 258, 160, 121, 110, 104], [0, 1, 1, 0, 0, 0, 0]),
    ],
)
def test_no_search_from_many_places_finds_a_more_likely_curve(sizes, steps, is_late):
    """Each of these once ended off the top, with an interval of no width, or in an overflow."""
    sizes, steps, is_late = np.array(sizes, float), np.array(steps, float), np.array(is_late, bool)
    fit = fit_censored_hyperbola(sizes, steps, is_late)
    starts = [(np.log(s), np.log(b), np.log(sigma)) for s in (50, 120) for b in (20, 500, 5e3) for sigma in (0.02, 0.3)]

    def loss(q):
        return -slow_log_likelihood(q, steps, sizes, is_late)

    options = {"maxiter": 4000, "xatol": 1e-8, "fatol": 1e-10}
    slow = min((minimize(loss, start, method="Nelder-Mead", options=options) for start in starts), key=lambda r: r.fun)

    assert pytest.approx(slow.x[1], abs=2e-3) == np.log(fit.b_crit)
    assert pytest.approx(slow.x[0], abs=2e-3) == np.log(fit.s_min)
    assert 0.01 < fit.log_se < 2


def test_its_standard_error_is_that_of_least_squares_where_nothing_is_censored():
    steps = (100 + 15_000 / SIZES) * np.array([1.1, 0.95, 1.02, 0.9, 1.06])
    plain, found = fit_hyperbola(SIZES, steps), fit_censored_hyperbola(SIZES, steps, np.zeros(5, dtype=bool))

    assert pytest.approx(plain.log_se, rel=1e-5) == found.log_se
