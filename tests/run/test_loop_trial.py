"""Following one trial of a loop: what is kept, and how far it is known, while others bring the end nearer."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.sweep import Sweep
from batchlab.engine.base import Point
from batchlab.errors import TrainerError
from batchlab.loops.generator import GeneratorTrainer
from batchlab.run.loop_trial import follow_trial
from batchlab.run.pack import Hooks, PackTask
from batchlab.store.pack_check import check_part

SWEEP = {
    "name": "own",
    "workload": {"loop": "train"},
    "sweep": {"batch_sizes": [8], "trials": 2, "max_steps": 100, "goal": "val/loss < 0.1"},
    "search_space": {},
}


def follow(loop, place, ends):
    """Follow a loop; at each question the end is the next of `ends`, and then the last one for good."""
    study, ends = Sweep.parse(SWEEP, "own").study(8), list(ends)
    hooks = Hooks(
        end_step=lambda: ends.pop(0) if len(ends) > 1 else ends[0],
        confirm_end=lambda end: None,
        progress=lambda standing: None,
        should_stop=lambda: False,
        save=lambda checkpoint: None,
    )
    task = PackTask(study, [Point(1, {})], 100)
    result = follow_trial(GeneratorTrainer(loop), task, hooks, place / "trials-1")
    outcomes = [vars(outcome) for outcome in result.outcomes]
    record = {"outcomes": outcomes, "environment": {}, "wall_seconds": result.wall_seconds}
    check_part(place / "parts" / "trials-1.parquet", result.measurements, record, study)
    return result


def counting(batch_size, seed):
    for step in range(10, 1000, 10):
        yield step, {"val/loss": 1.0}


def test_rows_beyond_an_end_that_came_nearer_are_told_as_they_are(tmp_path):
    result = follow(counting, tmp_path, [100] * 20 + [35])

    assert result.measurements.step[-1] == result.outcomes[0].last_step > 35


def test_a_trial_is_known_to_an_end_between_two_reports(tmp_path):
    result = follow(counting, tmp_path, [35])

    assert result.measurements.step.tolist() == [10, 20, 30]
    assert result.outcomes[0].last_step == 35


def test_a_row_at_the_very_end_is_kept_and_the_loop_is_not_asked_on(tmp_path):
    asked = []

    def noted(batch_size, seed):
        for step, metrics in counting(batch_size, seed):
            asked.append(step)
            yield step, metrics

    result = follow(noted, tmp_path, [40])

    assert result.measurements.step.tolist() == [10, 20, 30, 40]
    assert asked == [10, 20, 30, 40]


def test_an_end_before_the_first_report_leaves_a_row_of_nothing(tmp_path):
    result = follow(counting, tmp_path, [5])

    assert result.measurements.step.tolist() == [0]
    assert result.outcomes[0].goal_step is None and result.outcomes[0].last_step == 5


@pytest.mark.parametrize(("every", "ends", "steps"), [(10, [5], [0]), (4, [100] * 4 + [5], [4])])
def test_a_race_may_end_before_the_goals_metric_is_reported(tmp_path, every, ends, steps):
    """Another metric is reported first, at a step after the end: the loop would have told the goal's next."""

    def training_first(batch_size, seed):
        for step in range(every, 1000, every):
            yield step, {"train/loss": 1.0}
            if step > 5:
                yield step, {"val/loss": 1.0}

    result = follow(training_first, tmp_path, ends)

    assert result.measurements.step.tolist() == steps
    assert np.isnan(result.measurements.metrics["val/loss"]).all()
    assert result.outcomes[0].goal_step is None


def test_a_loop_that_never_reports_the_goals_metric_is_told(tmp_path):
    def training_only(batch_size, seed):
        for step in range(10, 1000, 10):
            yield step, {"train/loss": 1.0}

    with pytest.raises(TrainerError, match="has reported train/loss, but never val/loss, the goal's metric"):
        follow(training_only, tmp_path, [100])


def test_a_row_has_the_examples_that_its_loop_tells_or_those_of_its_batch_size(tmp_path):
    def growing(batch_size, seed):
        yield 10, {"val/loss": 1.0}
        yield 20, {"val/loss": 1.0, "examples": 320.0}
        yield 30, {"val/loss": 1.0}
        yield 40, {"examples": np.int64(900)}
        yield 40, {"val/loss": 1.0}

    assert follow(counting, tmp_path / "plain", [40]).measurements.examples.tolist() == [80, 160, 240, 320]
    result = follow(growing, tmp_path / "growing", [100])

    assert result.measurements.examples.tolist() == [80, 320, 320, 900]
    assert list(result.measurements.metrics) == ["val/loss"]


def test_examples_that_become_fewer_are_told_in_one_line(tmp_path):
    def shrinking(batch_size, seed):
        yield 10, {"val/loss": 1.0}
        yield 20, {"val/loss": 1.0, "examples": 79}
        yield 30, {"val/loss": 1.0}

    with pytest.raises(TrainerError, match="examples = 79 at step 20 are fewer than the 80 before it") as caught:
        follow(shrinking, tmp_path, [100])

    assert "\n" not in str(caught.value)
