from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.measurement import Curve, Measurements


def make_curve(trial_id, steps, **metrics):
    columns = {f"val/{name}": np.array(values, dtype=float) for name, values in metrics.items()}
    return Curve(trial_id, np.array(steps, dtype=np.int64), columns)


def test_curves_are_joined_in_the_order_of_their_trials():
    joined = Measurements.of([make_curve(7, [0, 5], loss=[3, 1]), make_curve(2, [0, 1, 4], loss=[3, 2, 0.5])])

    assert joined.trial_id.tolist() == [2, 2, 2, 7, 7]
    assert joined.step.tolist() == [0, 1, 4, 0, 5]
    assert joined.metrics["val/loss"].tolist() == [3, 2, 0.5, 3, 1]
    assert len(joined) == 5


def test_a_metric_that_a_trial_lacks_is_nan_there():
    joined = Measurements.of([make_curve(0, [0], loss=[3]), make_curve(1, [0], loss=[2], error=[0.9])])

    assert list(joined.metrics) == ["val/loss", "val/error"]
    np.testing.assert_array_equal(joined.metrics["val/error"], [np.nan, 0.9])


def test_no_curves_make_an_empty_table_of_the_right_types():
    joined = Measurements.of([])

    assert len(joined) == 0
    assert (joined.trial_id.dtype, joined.step.dtype) == (np.int64, np.int64)


def test_joining_keeps_the_types():
    joined = Measurements.of([make_curve(0, [0, 1], loss=[3, 1])])

    assert (joined.trial_id.dtype, joined.step.dtype, joined.metrics["val/loss"].dtype) == (
        np.int64,
        np.int64,
        np.float64,
    )


def test_a_curve_comes_back_out_of_the_table():
    joined = Measurements.of([make_curve(7, [0, 5], loss=[3, 1]), make_curve(2, [0, 4], loss=[3, np.nan])])
    curve = joined.curve(2)

    assert curve.steps.tolist() == [0, 4]
    np.testing.assert_array_equal(curve.metrics["val/loss"], [3, np.nan])
    assert joined.curve(99).steps.tolist() == []


def test_rows_are_selected_in_all_columns():
    joined = Measurements.of([make_curve(0, [0, 5, 9], loss=[3, 1, 2])])
    kept = joined.where(joined.step > 0)

    assert (kept.trial_id.tolist(), kept.step.tolist(), kept.metrics["val/loss"].tolist()) == ([0, 0], [5, 9], [1, 2])


@pytest.mark.parametrize("steps", [[0, 5, 5], [0, 5, 4]])
def test_steps_must_ascend(steps):
    with pytest.raises(ValueError, match="the steps of trial 3 do not ascend"):
        make_curve(3, steps, loss=[1, 2, 3])


def test_every_metric_has_one_value_for_each_step():
    with pytest.raises(ValueError, match="val/loss of trial 3"):
        make_curve(3, [0, 1], loss=[1, 2, 3])


def counted(trial_id, steps, examples):
    return Curve(trial_id, np.array(steps), {"val/loss": np.ones(len(steps))}, np.array(examples))


def test_examples_go_wherever_their_rows_go():
    joined = Measurements.of([counted(3, [0, 5, 9], [0, 40, 104]), counted(1, [0, 2], [0, 16])])

    assert (joined.examples.tolist(), joined.examples.dtype) == ([0, 16, 0, 40, 104], np.int64)
    assert joined.where(joined.step > 2).examples.tolist() == [40, 104]
    assert joined.curve(3).where(np.array([True, False, True])).examples.tolist() == [0, 104]


def test_rows_that_nobody_has_counted_are_of_one_batch_size():
    joined = Measurements.of([make_curve(0, [0, 5, 9], loss=[3, 1, 2])])

    assert joined.examples is None
    assert joined.counted(8).examples.tolist() == [0, 40, 72]
    assert joined.counted(8).counted(64).examples.tolist() == [0, 40, 72]


def test_curves_that_tell_their_examples_are_not_joined_with_others():
    with pytest.raises(ValueError, match="some of the curves tell their examples and others do not"):
        Measurements.of([counted(0, [0], [0]), make_curve(1, [0], loss=[1])])


def test_examples_of_another_length_are_refused():
    with pytest.raises(ValueError, match="examples of trial 3 has"):
        counted(3, [0, 5], [0])
