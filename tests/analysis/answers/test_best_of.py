from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom

from batchlab.analysis import Interval, best_of
from batchlab.analysis.answers.best_of import size_of_best, upper_rank

# By n trials: m = floor(n ln 2 / ln 40), the k-th of them that bounds the interval, and its exact coverage.
TABLE = {
    6: (1, 6, 0.969),
    8: (1, 8, 0.992),
    12: (2, 8, 0.976),
    16: (3, 8, 0.967),
    24: (4, 9, 0.976),
    32: (6, 8, 0.956),
    50: (9, 9, 0.968),
    64: (12, 9, 0.966),
    100: (18, 9, 0.965),
}


def exact_coverage(num_trials: int) -> float:
    """How often the interval holds the median minimum of m: it lies between the smallest and the k-th of n steps."""
    m = size_of_best(num_trials)
    beats_it = binom(num_trials, 1 - 2 ** (-1 / m))
    return beats_it.sf(0) - beats_it.sf(upper_rank(num_trials, m) - 1)


@pytest.mark.parametrize("num_trials", TABLE)
def test_the_table_of_m_k_and_coverage_is_exact(num_trials):
    m = size_of_best(num_trials)

    assert TABLE[num_trials] == (m, upper_rank(num_trials, m), round(exact_coverage(num_trials), 3))


@pytest.mark.parametrize("num_trials", [*range(6, 200), 1000, 5000])
def test_every_study_of_six_trials_or_more_is_covered(num_trials):
    assert exact_coverage(num_trials) >= 0.95


def test_below_six_trials_or_without_a_success_there_is_none():
    assert best_of([1, 2, 3, 4, 5], 5) is None
    assert best_of([], 32) is None


def test_six_trials_give_their_median_and_their_range():
    found = best_of([10, 20, 30, 40, 50, 60], 6)

    assert (found.m, found.steps, found.interval) == (1, 35, Interval(10, 60))


@pytest.mark.parametrize("num_trials", [6, 8, 12, 13, 16])
def test_the_estimate_is_the_median_over_all_draws(num_trials):
    steps = sorted(np.random.default_rng(num_trials).choice(1000, num_trials, replace=False).tolist())
    minima = [min(draw) for draw in combinations(steps, size_of_best(num_trials))]

    assert np.median(minima) == best_of(steps, num_trials).steps


def test_unreached_trials_rank_last_and_open_the_interval():
    assert best_of([10, 20], 6).interval == Interval(10, None)
    assert best_of([10, 20, 30], 6).steps is None  # the median is between the third and the fourth
    assert best_of([10, 20, 30, 40], 6).steps == 35
    # n = 7, m = 1: the fourth is the median.
    assert best_of([10, 20, 30, 40], 7).steps == 40
    assert best_of([10, 20, 30], 7).steps is None
