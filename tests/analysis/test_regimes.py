from __future__ import annotations

import pytest

from batchlab.analysis import measure_scaling


def test_efficiency_and_regimes_of_a_curve_by_hand(make_row):
    rows = [make_row(1, [1000]), make_row(2, [500]), make_row(4, [301]), make_row(8, [250]), make_row(16, [240])]
    found = measure_scaling(rows)

    assert pytest.approx(found.efficiencies) == (1.0, 1.0, 1000 / 1204, 0.5, 1000 / 3840)
    assert found.regimes == ("perfect", "perfect", "perfect", "maximal", "maximal")
    assert (found.base_batch_size, found.end_of_perfect, found.max_useful) == (1, 4, 8)
    assert found.is_saturated
    assert not found.is_perfect_throughout


def test_thresholds_move_the_ends(make_row):
    rows = [make_row(1, [1000]), make_row(2, [500]), make_row(4, [301]), make_row(8, [250]), make_row(16, [240])]
    found = measure_scaling(rows, min_efficiency=0.9, max_excess=0.01)

    assert (found.end_of_perfect, found.max_useful) == (2, 16)
    assert found.regimes == ("perfect", "perfect", "diminishing", "diminishing", "diminishing")


def test_the_end_of_a_falling_curve_is_no_plateau(make_row):
    found = measure_scaling([make_row(size, [4096 // size]) for size in (1, 2, 4, 8)])

    assert found.regimes == ("perfect",) * 4
    assert (found.end_of_perfect, found.max_useful) == (8, 8)
    assert found.is_perfect_throughout
    assert not found.is_saturated


def test_perfect_scaling_does_not_come_back(make_row):
    found = measure_scaling([make_row(1, [1000]), make_row(2, [900]), make_row(4, [250]), make_row(8, [125])])

    assert found.end_of_perfect == 1
    assert found.regimes == ("perfect", "diminishing", "diminishing", "diminishing")


def test_batch_sizes_not_reached_have_no_regime_and_anchor_nothing(make_row):
    found = measure_scaling([make_row(1), make_row(2, [500]), make_row(4, [250]), make_row(8)])

    assert found.base_batch_size == 2
    assert found.efficiencies == (None, 1.0, 1.0, None)
    assert found.regimes == (None, "perfect", "perfect", None)


def test_nothing_reached_has_no_scaling(make_row):
    found = measure_scaling([make_row(1), make_row(2)])

    assert (found.base_batch_size, found.end_of_perfect, found.max_useful) == (None, None, None)
    assert not found.is_saturated


def test_a_goal_met_before_the_first_update_scales_without_dividing_by_zero(make_row):
    assert measure_scaling([make_row(1, [0]), make_row(2, [0])]).efficiencies == (1.0, 1.0)
