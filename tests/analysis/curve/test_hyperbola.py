from __future__ import annotations

import numpy as np
import pytest

from batchlab.analysis import fit_hyperbola, fit_power_law

OCTAVES = 2.0 ** np.arange(4, 14)  # 16 ... 8192: ten batch sizes on both sides of 512


def test_exact_data_return_their_parameters_to_solver_precision():
    """S_min = 100 and E_min = 51,200, so B_crit = 512."""
    fit = fit_hyperbola(OCTAVES, 100 + 51200 / OCTAVES)

    assert pytest.approx((fit.s_min, fit.e_min, fit.b_crit), rel=1e-10) == (100, 51200, 512)
    assert pytest.approx(fit.log_se, abs=1e-10) == 0


def test_exact_data_with_b_crit_beyond_the_batch_sizes_have_a_point_for_an_interval():
    """Some of these curves go through every point to the last bit: their sum of squares is zero."""
    batch_sizes = np.array([2.0, 4, 8, 16, 32])
    for b_crit in np.geomspace(100, 10_000, 300):
        fit = fit_hyperbola(batch_sizes, 1 + b_crit / batch_sizes)

        assert pytest.approx((fit.interval.low, fit.interval.high), rel=1e-5) == (b_crit, b_crit)


def test_the_tuned_noisy_quadratic_model_has_its_known_fit():
    """Tuned steps of the noisy quadratic model, exact, and their fit."""
    batch_sizes = np.array([1.0, 4, 16, 64, 256, 1024, 4096])
    fit = fit_hyperbola(batch_sizes, np.array([4335.0, 1099, 292, 95, 54, 44, 41]))

    assert pytest.approx(fit.s_min, abs=0.05) == 39.0
    assert pytest.approx(fit.e_min, abs=0.5) == 4119
    assert pytest.approx(fit.b_crit, abs=0.5) == 106
    assert pytest.approx(fit.log_se, abs=0.005) == 0.05
    assert pytest.approx(np.abs(fit.residuals).max(), abs=0.0005) == 0.084
    assert fit.residuals[3] < 0  # at 64 the measured steps lie below the curve


def test_the_delta_interval_covers_as_often_as_it_should():
    """10 % noise, 400 curves: 93.75 % covered, sd of log B_crit 0.099."""
    rng = np.random.default_rng(0)
    noise = np.exp(0.1 * rng.standard_normal((400, len(OCTAVES))))
    fits = [fit_hyperbola(OCTAVES, (100 + 51200 / OCTAVES) * factors) for factors in noise]
    covered = [low < 512 < high for low, high in ((fit.interval.low, fit.interval.high) for fit in fits)]

    assert pytest.approx(np.mean(covered), abs=0.03) == 0.9375
    assert pytest.approx(np.std([np.log(fit.b_crit) for fit in fits]), abs=0.01) == 0.099


def test_three_points_are_enough_and_their_interval_is_wide():
    batch_sizes = np.array([1.0, 100, 10000])
    fit = fit_hyperbola(batch_sizes, (10 + 1000 / batch_sizes) * np.array([1.05, 0.95, 1.05]))

    assert fit.interval.low < 100 < fit.interval.high
    assert fit.interval.high / fit.interval.low > 10  # Student's t with one degree of freedom is 12.7


def test_the_hyperbola_is_preferred_on_its_own_data():
    steps = 100 + 51200 / OCTAVES
    law = fit_power_law(OCTAVES, steps)

    assert pytest.approx(law.exponent, abs=1e-6) == 1
    assert pytest.approx(law.aic_difference) == 2  # one parameter more, and nothing for it


def test_the_power_law_is_preferred_on_its_own_data():
    steps = 100 + (51200 / OCTAVES) ** 0.7
    law = fit_power_law(OCTAVES, steps)

    assert pytest.approx((law.s_min, law.e_min, law.exponent), rel=1e-4) == (100, 51200, 0.7)
    assert law.aic_difference < -50


def test_three_points_cannot_choose_between_curves():
    steps = 100 + 51200 / OCTAVES[:3]

    assert fit_power_law(OCTAVES[:3], steps) is None
