from __future__ import annotations

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


def test_a_per_cent_is_no_departure():
    steps = 100 * (1 + 150 / SIZES) * (1 + 0.01 * np.sin(SIZES))

    assert is_hyperbolic(SIZES, fit_hyperbola(SIZES, steps))


def test_three_batch_sizes_cannot_tell():
    assert is_hyperbolic(SIZES[:3], fit_hyperbola(SIZES[:3], np.array([100.0, 20, 90])))


@pytest.mark.parametrize(("soft", "least", "most"), [(1.0, 0.6, 0.8), (0.7, 0.0, 0.02)])
def test_most_hyperbolas_are_kept_and_other_curves_are_not(soft, least, most):
    """At 15 % noise; a residual above 0.25 or AIC alone would reject 73 % of true hyperbolas."""
    rng = np.random.default_rng(0)
    draws = 100 * (1 + (150 / SIZES) ** soft) * np.exp(0.15 * rng.standard_normal((300, 13)))

    assert least <= np.mean([is_hyperbolic(SIZES, fit_hyperbola(SIZES, steps)) for steps in draws]) <= most


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
