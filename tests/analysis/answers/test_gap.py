"""What a grid of evaluations leaves unseen, and what that does to a critical batch size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from batchlab.analysis import fit_hyperbola
from batchlab.analysis.answers.gap import earliest_step, grid_noise
from batchlab.analysis.answers.headline import Estimate
from batchlab.analysis.curve.censored_hyperbola import fit_censored_hyperbola

SIZES = np.array([16.0, 64.0, 256.0])
ON_A_CURVE = np.array([45.0, 25.0, 20.0])
"""Multiples of 5 that lie on a hyperbola, to the last digit."""


@pytest.mark.parametrize(
    ("evaluated", "steps", "earliest"),
    [
        ([0, 1, 2], 1, 1),  # every step was evaluated
        ([0, 1, 2], 2, 2),
        ([0, 10, 20], 10, 1),
        ([0, 10, 20], 20, 11),
        ([0, 10, 20], 0, 0),
        ([0, 10, 20, 40], 30, 11),  # a median between two evaluations, 20 steps apart
        ([0, 10, 20], 55, 46),  # beyond the last: of a replicate that trained for longer
        ([100, 200], 100, 1),
    ],
)
def test_a_goal_may_have_been_met_after_the_evaluation_before(evaluated, steps, earliest):
    assert earliest_step(np.array(evaluated), steps) == earliest


def test_one_evaluation_has_no_gap():
    assert earliest_step(np.array([10]), 10) == earliest_step(np.array([], dtype=int), 10) == 10


def test_the_noise_of_a_grid_is_that_of_whole_numbers():
    """Of 11, 12, ..., 20 the variance is (10^2 - 1) / 12 = 8.25, and the middle 15.5."""
    coarse, exact = Estimate(20, None, earliest=11), Estimate(20, None, earliest=20)

    assert coarse.middle == 15.5
    assert exact.middle == 20
    assert coarse.is_exact is False
    assert exact.is_exact is True
    assert grid_noise([coarse]) == pytest.approx(math.sqrt(8.25) / 15.5)
    assert grid_noise([coarse, exact]) == pytest.approx(math.sqrt(8.25 / 2) / 15.5)
    assert grid_noise([exact]) == grid_noise([]) == 0.0


def test_answers_read_at_one_evaluation_share_their_delay():
    coarse, later = Estimate(20, None, earliest=11), Estimate(30, None, earliest=21)

    assert grid_noise([coarse] * 3) == pytest.approx(math.sqrt(3) * grid_noise([coarse]))
    assert grid_noise([coarse, coarse, later]) == pytest.approx(math.sqrt((4 * 8.25 / 15.5**2 + 8.25 / 25.5**2) / 3))


def test_steps_that_lie_on_a_curve_by_chance_give_no_interval_without_a_width():
    """Evaluated every five steps, with gaps of 5 in 45, 25 and 20: simulated, such intervals cover 93 % and more."""
    noise = grid_noise([Estimate(steps, None, earliest=steps - 4) for steps in ON_A_CURVE])
    fit = fit_hyperbola(SIZES, ON_A_CURVE, noise)
    exact = fit_hyperbola(SIZES, ON_A_CURVE)

    assert exact.interval.high / exact.interval.low == pytest.approx(1, abs=1e-6)
    assert fit.b_crit == exact.b_crit
    assert fit.interval.high / fit.interval.low > 1.9


def test_so_it_is_towards_the_ends():
    steps = np.array([400.0, 380.0, 375.0])  # B_crit far below the smallest batch size
    assert fit_hyperbola(SIZES, steps).interval.high is not None
    assert fit_hyperbola(SIZES, steps, 0.5).interval.low is None


def test_noise_below_the_scatter_changes_nothing():
    steps = ON_A_CURVE * np.array([1.1, 0.9, 1.1])

    assert fit_hyperbola(SIZES, steps, 0.001).interval == fit_hyperbola(SIZES, steps).interval


def test_the_censored_fit_knows_the_same_noise():
    sizes, steps = np.append(SIZES, 1024.0), np.append(ON_A_CURVE, 15.0)
    is_censored = np.array([False, False, False, True])
    plain, noisy = (fit_censored_hyperbola(sizes, steps, is_censored, noise) for noise in (0.0, 0.2))

    assert noisy.log_se > 100 * plain.log_se
    assert noisy.log_se == pytest.approx(fit_hyperbola(SIZES, ON_A_CURVE, 0.2).log_se, rel=0.2)
    assert fit_censored_hyperbola(sizes, steps * [1.3, 0.8, 1.2, 1], is_censored, 1e-3).log_se == pytest.approx(
        fit_censored_hyperbola(sizes, steps * [1.3, 0.8, 1.2, 1], is_censored).log_se
    )
