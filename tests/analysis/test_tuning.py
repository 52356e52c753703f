from __future__ import annotations

import pytest

from batchlab.analysis import example_study, guides, tuned_bounds, tuned_points
from batchlab.core.goal import Goal


def test_the_best_points_of_reached_batch_sizes_are_taken(make_row):
    points = tuned_points(
        [
            make_row(1, [9], metaparameters={"learning_rate": 0.1, "momentum": 0.9}, at_boundary=("momentum",)),
            make_row(2),
            make_row(4, [5], metaparameters={"learning_rate": 0.3, "momentum": 0.0}),
        ]
    )

    assert [point.batch_size for point in points] == [1, 4]
    assert pytest.approx([point.effective_learning_rate for point in points]) == [1.0, 0.3]
    assert [point.momentum for point in points] == [0.9, 0.0]
    assert [point.at_boundary for point in points] == [("momentum",), ()]


def test_absent_momentum_is_none_and_leaves_the_learning_rate_as_it_is(make_row):
    (point,) = tuned_points([make_row(1, [9], metaparameters={"learning_rate": 0.1})])

    assert (point.momentum, point.effective_learning_rate) == (None, 0.1)


def test_guides_are_anchored_at_the_smallest_reached_batch_size(make_row):
    points = tuned_points(
        [make_row(size, [9], metaparameters={"learning_rate": 0.1, "momentum": 0.5}) for size in (2, 8, 32)]
    )

    assert pytest.approx(guides(points, "learning_rate").linear) == (0.1, 0.4, 1.6)
    assert pytest.approx(guides(points, "learning_rate").square_root) == (0.1, 0.2, 0.4)
    assert pytest.approx(guides(points, "effective_learning_rate").square_root) == (0.2, 0.4, 0.8)


def test_there_is_no_guide_without_a_point_or_without_the_metaparameter(make_row):
    assert guides((), "learning_rate") is None
    assert guides(tuned_points([make_row(1, [9], metaparameters={"width": 3})]), "learning_rate") is None


def test_bounds_span_the_trials_that_may_well_be_the_best():
    # Trials 0, 1, 3 meet the goal at once: the best of a draw of three is trial 0 in 19, 1 in 7 and 3 in 1 of 27 cases.
    study, goal = example_study(), Goal.read("val/classification_error < 1")

    assert tuned_bounds(study, goal, "learning_rate") == (0.01, 0.03)
    assert pytest.approx(tuned_bounds(study, goal, "effective_learning_rate")) == (0.1, 0.6)
    assert pytest.approx(tuned_bounds(study, goal, "effective_learning_rate", num_trials=2)) == (0.1, 0.3)


def test_bounds_are_open_where_draws_without_a_success_are_common_and_absent_for_one_trial():
    study = example_study()

    assert tuned_bounds(study, Goal.read("val/classification_error < 0.05"), "momentum") == (None, None)
    assert tuned_bounds(study, Goal.read("val/classification_error < 0.01"), "momentum") is None
    assert tuned_bounds(study, Goal.read("val/classification_error < 1"), "momentum", num_trials=1) is None
