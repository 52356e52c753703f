"""The rows of a pack, where not every metric is measured at every step."""

from __future__ import annotations

import numpy as np

from batchlab.engine.loop import Evaluated
from batchlab.run.recorder import Recorder


def row(step, trial_ids, seconds=0.0, **metrics):
    names = {name.replace("_", "/", 1): np.array(values) for name, values in metrics.items()}
    return Evaluated(step, np.array(trial_ids), names, seconds)


def test_a_metric_that_is_not_measured_at_every_step_is_nan_elsewhere(make_scripted):
    recorder = Recorder(make_scripted().study(8))
    recorder.add(row(0, [0, 1], val_loss=[3.0, 4.0]))
    recorder.add(row(10, [0, 1], val_loss=[1.0, 2.0], val_noise=[7.0, 8.0]))
    recorder.add(row(20, [1], val_noise=[9.0]))

    table = recorder.measurements()

    assert table.trial_id.tolist() == [0, 0, 1, 1, 1]
    assert table.step.tolist() == [0, 10, 0, 10, 20]
    np.testing.assert_array_equal(table.metrics["val/loss"], [3, 1, 4, 2, np.nan])
    np.testing.assert_array_equal(table.metrics["val/noise"], [np.nan, 7, np.nan, 8, 9])


def test_a_step_without_the_goals_metric_meets_no_goal(make_scripted):
    recorder = Recorder(make_scripted().study(8))
    recorder.add(row(10, [0], val_noise=[0.0]))
    recorder.add(row(20, [0], val_loss=[0.4]))

    assert recorder.goal_steps == {0: 20}


def test_such_rows_come_back_from_a_checkpoint_as_they_were(make_scripted):
    recorder, restored = (Recorder(make_scripted().study(8)) for _ in range(2))
    recorder.add(row(0, [0, 1], val_loss=[3.0, 4.0]))
    recorder.add(row(10, [0, 1], val_noise=[7.0, 8.0]))
    table = recorder.measurements()

    restored.restore({"trial_id": table.trial_id, "step": table.step, **table.metrics})

    for name, column in table.metrics.items():
        np.testing.assert_array_equal(restored.measurements().metrics[name], column)


def test_a_pack_tells_its_best_value_and_the_time_of_its_evaluations(make_scripted):
    recorder = Recorder(make_scripted().study(8))
    recorder.add(row(0, [0, 1], seconds=0.5, val_loss=[3.0, np.nan]))
    recorder.add(row(10, [0, 1], seconds=0.25, val_loss=[3.5, 2.0]))

    standing = recorder.standing()

    assert (standing.step, standing.num_live, standing.best_steps, standing.best_value) == (10, 2, None, 2.0)
    assert (standing.num_evaluations, standing.evaluation_seconds) == (2, 0.75)
