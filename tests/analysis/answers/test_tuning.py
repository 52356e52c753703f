from __future__ import annotations

from dataclasses import replace

import pytest

from batchlab.analysis import guides, top_trials, tuned_points
from batchlab.core.trial import Status, Trial


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


def test_a_goal_met_before_training_tells_nothing_about_metaparameters(make_row):
    assert tuned_points([make_row(1, [0], metaparameters={"learning_rate": 0.1}, at_boundary=("learning_rate",))]) == ()


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


def trial(trial_id, **point):
    return Trial(trial_id=trial_id, status=Status.COMPLETE, metaparameters=point, last_step=10)


def test_the_region_spans_the_top_trials(make_row):
    row = make_row(8, [9], metaparameters={"learning_rate": 0.1, "momentum": 0.9})
    top = (trial(0, learning_rate=0.1, momentum=0.9), trial(1, learning_rate=0.3, momentum=0.5), trial(2, momentum=0.0))
    (point,) = tuned_points([replace(row, top_trials=top)])

    assert point.num_top == 3
    assert point.region == {"learning_rate": (0.1, 0.3), "momentum": (0.0, 0.9)}
    assert point.region_of("momentum") == (0.0, 0.9)
    assert pytest.approx(point.region_of("effective_learning_rate")) == (0.6, 1.0)


def test_a_confirmed_point_that_is_not_at_the_top_of_the_search_widens_the_region(make_row):
    """Five points were confirmed, and the fifth of the search won: the best lies in its own range."""
    row = make_row(8, [9], replicate_steps=[10] * 6)
    top = tuple(trial(i, learning_rate=rate) for i, rate in enumerate((0.1, 0.2, 0.3)))
    row = replace(row, top_trials=top, confirmed=replace(row.confirmed, trial=trial(4, learning_rate=0.5)))
    (point,) = tuned_points([row], "confirmed")

    assert (point.learning_rate, point.num_top, point.region) == (0.5, 4, {"learning_rate": (0.1, 0.5)})


def test_without_top_trials_there_is_no_region(make_row):
    (point,) = tuned_points([make_row(8, [9], metaparameters={"learning_rate": 0.1})])

    assert (point.num_top, point.region, point.region_of("learning_rate")) == (0, {}, None)
    assert point.region_of("effective_learning_rate") is None


def test_the_point_of_a_confirmed_curve_is_the_confirmed_one(make_row):
    row = make_row(8, [9], at_boundary=("learning_rate",), replicate_steps=[10] * 6)
    confirmed = replace(row.confirmed, trial=trial(7, learning_rate=0.7))
    row = replace(row, confirmed=confirmed)

    assert [point.learning_rate for point in tuned_points([row], "confirmed")] == [0.7]
    assert [point.at_boundary for point in tuned_points([row], "confirmed")] == [()]
    assert [point.learning_rate for point in tuned_points([row], "best_of")] == [0.1]


def test_top_trials_are_close_to_the_fewest_steps_and_a_quarter_at_most():
    steps = {number: 100 + number for number in range(20)}

    assert top_trials(steps) == (0, 1, 2, 3, 4)  # a quarter of twenty, of twenty that are close
    assert top_trials({number: steps[number] for number in range(8)}) == (0, 1, 2)  # three, though a quarter is two
    assert top_trials({0: 150, 1: 100, 2: 151, 3: None}) == ()  # two are within 1.5 times the fewest
    assert top_trials({0: 0, 1: 0, 2: 0, 3: 5}) == (0, 1, 2)
    assert top_trials({0: None}) == ()
