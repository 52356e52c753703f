from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from batchlab.analysis import fit_hyperbola
from batchlab.analysis.curve.curve_choice import departs, is_hyperbolic

SIZES = 2.0 ** np.arange(13)


def test_exact_curves_are_told_apart():
    assert is_hyperbolic(SIZES, fit_hyperbola(SIZES, 100 * (1 + 150 / SIZES)))
    assert not is_hyperbolic(SIZES, fit_hyperbola(SIZES, 100 * np.maximum(1, 150 / SIZES)))
    assert not is_hyperbolic(SIZES, fit_hyperbola(SIZES, 100 * (1 + (150 / SIZES) ** 0.7)))


def test_known_noise_excuses_what_it_explains():
    steps = 100 * np.maximum(1, 150 / SIZES)

    assert is_hyperbolic(SIZES, fit_hyperbola(SIZES, steps), noise=1.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_less_is_asked_of_a_knee_than_of_its_opposite(sign):
    """Residuals of one noise along the direction of a knee: their ratio is 1, above 0.75 and below 1.5."""
    exact = fit_hyperbola(SIZES, 100 * (1 + 150 / SIZES))
    way = knee_direction()

    assert is_hyperbolic(SIZES, replace(exact, residuals=sign * 0.3 * way), noise=0.3) == (sign < 0)
    assert is_hyperbolic(SIZES, replace(exact, residuals=sign * 0.3 * way), noise=0.3, is_exact=True)
    assert not is_hyperbolic(SIZES, replace(exact, residuals=sign * 0.3 * 1.3 * way), noise=0.3)  # 1.3^2 = 1.69


def knee_direction():
    """The change of log S from p = 1 on in S^p = 1 + (150 / B)^p, less what S_min and B_crit can do, of length 1."""

    def log_steps(p=1.0, b_crit=150.0):
        return np.log(1 + (b_crit / SIZES) ** p) / p

    change = log_steps(p=1.0001) - log_steps()
    known = np.stack([np.ones_like(SIZES), log_steps(b_crit=150.01) - log_steps()], axis=1)
    rest = change - known @ np.linalg.lstsq(known, change)[0]
    return rest / np.linalg.norm(rest)


def test_a_per_cent_is_no_departure():
    steps = 100 * (1 + 150 / SIZES) * (1 + 0.01 * np.sin(SIZES))

    assert is_hyperbolic(SIZES, fit_hyperbola(SIZES, steps))


def test_three_batch_sizes_cannot_tell():
    assert is_hyperbolic(SIZES[:3], fit_hyperbola(SIZES[:3], np.array([100.0, 20, 90])))


@pytest.mark.parametrize(("soft", "least", "most"), [(1.0, 0.55, 0.7), (0.7, 0.0, 0.02)])
def test_most_hyperbolas_are_kept_and_other_curves_are_not(soft, least, most):
    """At 15 % noise; a residual above 0.25 or AIC alone would reject 73 % of true hyperbolas."""
    rng = np.random.default_rng(0)
    draws = 100 * (1 + (150 / SIZES) ** soft) * np.exp(0.15 * rng.standard_normal((300, 13)))

    assert least <= np.mean([is_hyperbolic(SIZES, fit_hyperbola(SIZES, steps)) for steps in draws]) <= most


def test_hardly_any_knee_is_taken_for_a_hyperbola():
    """At 15 % noise, of 1,000 one is; seven would be, were 1.5 times the scatter asked of a knee as well."""
    rng = np.random.default_rng(0)
    draws = 100 * np.maximum(1, 150 / SIZES) * np.exp(0.15 * rng.standard_normal((1000, 13)))

    assert np.mean([is_hyperbolic(SIZES, fit_hyperbola(SIZES, steps)) for steps in draws]) <= 0.002


@pytest.mark.parametrize("num_sizes", [4, 5, 7, 13])
def test_of_true_hyperbolas_hardly_any_is_said_to_be_none(num_sizes):
    """At 5 %, of 600: the standard error is 0.9 %."""
    rng, sizes = np.random.default_rng(0), 2.0 ** np.linspace(0, 12, num_sizes)
    draws = 100 * (1 + 150 / sizes) * np.exp(0.15 * rng.standard_normal((600, num_sizes)))

    assert np.mean([departs(sizes, fit_hyperbola(sizes, steps)) for steps in draws]) <= 0.075


def test_a_soft_curve_is_said_to_be_none():
    rng = np.random.default_rng(0)
    draws = 100 * (1 + (150 / SIZES) ** 0.7) * np.exp(0.15 * rng.standard_normal((100, 13)))

    assert np.mean([departs(SIZES, fit_hyperbola(SIZES, steps)) for steps in draws]) >= 0.9
