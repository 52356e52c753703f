from __future__ import annotations

import pytest

from batchlab.analysis import bound_scaling, measure_scaling


def test_equal_trials_leave_no_doubt(make_row):
    rows = [make_row(1, [1000] * 3), make_row(2, [500] * 3), make_row(4, [500] * 3), make_row(8)]
    bounds = bound_scaling(rows)

    assert bounds.efficiencies == ((1.0, 1.0), (1.0, 1.0), (0.5, 0.5), None)
    assert bounds.end_of_perfect == (2, 2)
    assert bounds.max_useful == (2, 2)


def test_a_lucky_trial_widens_the_interval_of_the_end_of_perfect_scaling(make_row):
    # The one fast trial at batch size 4 is missing from about 37 % of all draws.
    rows = [make_row(1, [1000] * 20), make_row(2, [500] * 20), make_row(4, [250, *[400] * 19])]
    bounds = bound_scaling(rows)

    assert measure_scaling(rows).end_of_perfect == 4
    assert bounds.end_of_perfect == (2, 4)
    assert pytest.approx(bounds.efficiencies[2]) == (1000 / 1600, 1.0)


def test_thresholds_are_arguments(make_row):
    rows = [make_row(1, [1000] * 3), make_row(2, [600] * 3), make_row(4, [500] * 3)]

    assert bound_scaling(rows).end_of_perfect == (2, 2)
    assert bound_scaling(rows, min_efficiency=0.9).end_of_perfect == (1, 1)
    assert bound_scaling(rows).max_useful == (2, 2)
    assert bound_scaling(rows, max_excess=0.1).max_useful == (4, 4)


def test_nothing_reached_has_no_bounds_and_a_single_trial_none_of_efficiency(make_row):
    assert bound_scaling([make_row(1), make_row(2)]).max_useful is None
    assert bound_scaling([make_row(1, [9]), make_row(2, [5])]).efficiencies == ((1.0, 1.0), None)


def test_the_same_seed_gives_the_same_bounds(make_row):
    rows = [make_row(size, [4000 // size + 7 * k for k in range(12)]) for size in (1, 2, 4, 8, 16)]

    assert bound_scaling(rows, seed=3) == bound_scaling(rows, seed=3)
