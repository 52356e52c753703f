"""What every executor promises (`run/executors/executor.py`), as tests over each: `ExecutorContract`, by inheritance.

A class of tests for one executor has the fixture `make_executor(trainer, batch_sizes)`, which makes one with a single
worker, and `kill_worker(executor)`, which kills that worker, or None where it cannot die alone.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from batchlab.core.study import Study
from batchlab.engine.base import Point, Trainer
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.errors import InputError, TrainerError, TrialError
from batchlab.run.errand import CalibrateTask
from batchlab.run.executors.executor import Failed, Finished, Lost, Passing, Paused, Progress, Saved, Stopped
from batchlab.run.pack import Hooks, PackTask, train_pack
from batchlab.run.resume import UnusableCheckpointError
from batchlab.run.shelf import Shelf
from batchlab.store.study_folder import StudyFolder

PATIENCE = 60.0


@dataclass(frozen=True)
class Ask:
    """An errand that returns a word, or raises."""

    study: Study
    answer: Any

    doing: ClassVar[str] = "asking"

    def perform(self, trainer: Trainer) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@dataclass(frozen=True)
class SlowTrainer(QuadraticTrainer):
    """A quadratic model of which an update takes a while, so that a pack can be met at work."""

    seconds: float = 0.01

    def program(self, study: Study, points: Any, state: Any = None) -> Any:
        program = super().program(study, points, state)
        advance = program.advance

        def slowly(target: int) -> None:
            threading.Event().wait(self.seconds)
            advance(min(target, program.step + 1))

        program.advance = slowly
        return program


def to_the_end(executor: Any, patience: float = PATIENCE) -> list[Any]:
    """Return the events of a task up to its end."""
    events: list[Any] = []
    while not events or isinstance(events[-1], Passing):
        heard = list(executor.events(patience))
        assert heard, "nothing happens"
        events += heard
    return events


def until(executor: Any, kind: type) -> Any:
    """Return the next event of a kind."""
    while True:
        for event in executor.events(PATIENCE):
            if isinstance(event, kind):
                return event


def same(result: Any, expected: Any) -> bool:
    """Return whether two packs came to the same, bit for bit."""
    one, other = result.measurements, expected.measurements
    return (
        result.outcomes == expected.outcomes
        and np.array_equal(one.trial_id, other.trial_id)
        and np.array_equal(one.step, other.step)
        and all(one.metrics[name].tobytes() == values.tobytes() for name, values in other.metrics.items())
    )


def train_alone(task: PackTask) -> Any:
    """Train a pack here, with no other beside it and nobody to keep its checkpoints."""
    hooks = Hooks(lambda: task.end_step, lambda end: None, lambda _: None, lambda: False, lambda _: None)
    return train_pack(QuadraticTrainer(), task, hooks)


class ExecutorContract:
    """Inherit it as `TestNAME`."""

    kill_worker: ClassVar[Callable[[Any], None] | None] = None

    @pytest.fixture
    def study(self, make_nqm):
        return make_nqm({"sweep.protocol": "full", "sweep.max_steps": 100}).study(16)

    @pytest.fixture
    def task(self, study):
        points = [Point(trial_id, {"learning_rate": rate}) for trial_id, rate in enumerate((0.1, 0.5))]
        return PackTask(study, points, study.max_steps)

    @pytest.fixture
    def shelf(self, study, tmp_path):
        return Shelf(StudyFolder(tmp_path / "lab" / "16"), "trials-0-1", study)

    @pytest.fixture
    def executor(self, make_executor):
        with closing(make_executor(QuadraticTrainer(), [16])) as executor:
            yield executor

    @pytest.fixture
    def slow(self, make_executor):
        with closing(make_executor(SlowTrainer(), [16])) as executor:
            yield executor

    # Tasks

    def test_a_pack_comes_back_with_its_key_and_what_it_came_to(self, executor, task, shelf):
        assert executor.num_idle == 1
        executor.submit(("any", 3), task, shelf)
        assert executor.num_idle == 0

        end = to_the_end(executor)[-1]

        assert isinstance(end, Finished)
        assert end.key == ("any", 3)
        assert same(end.result, train_alone(task))
        assert executor.num_idle == 1

    def test_a_task_is_a_value_that_names_no_place(self, task):
        sent = pickle.loads(pickle.dumps(task))

        assert sent == task
        assert not any(isinstance(getattr(task, field.name), Path) for field in fields(task))

    def test_an_errand_comes_back_with_its_answer(self, executor, study):
        executor.submit("size", CalibrateTask(study, {"learning_rate": 0.5}))
        (end,) = to_the_end(executor)

        pack_size, seconds = end.result

        assert 1 <= pack_size <= study.trials
        assert 0 < seconds < 1

    def test_a_worker_lives_on_after_a_task_that_failed(self, executor, study):
        executor.submit(1, Ask(study, InputError("no such thing")))
        (refused,) = to_the_end(executor)
        executor.submit(2, Ask(study, ZeroDivisionError("nought")))
        (broken,) = to_the_end(executor)
        executor.submit(3, Ask(study, "yes"))

        assert to_the_end(executor) == [Finished(3, "yes")]
        assert (refused.key, type(refused.error), str(refused.error)) == (1, InputError, "no such thing")
        assert isinstance(broken, Failed) and isinstance(broken.error, TrialError)
        assert "at batch size 16" in str(broken.error) and "ZeroDivisionError: nought" in str(broken.error)

    def test_training_code_that_exits_fails_with_a_sentence_that_says_so(self, executor, study):
        executor.submit(1, Ask(study, SystemExit(3)))
        (refused,) = to_the_end(executor)

        assert isinstance(refused, Failed) and isinstance(refused.error, TrainerError)
        assert str(refused.error).startswith("At batch size 16, while asking: sys.exit(3) was called")

    def test_nothing_is_heard_while_nothing_happens(self, executor):
        assert list(executor.events(0.01)) == []

    # Checkpoints

    def test_a_pack_that_pauses_has_its_checkpoint_on_the_shelf_and_goes_on_from_it(self, executor, task, shelf):
        executor.submit("pack", replace(task, pause_step=50), shelf)
        events = to_the_end(executor)
        resume = shelf.read((0, 1))
        executor.submit("pack", replace(task, resume=resume), shelf)

        assert events[-1] == Paused("pack")
        assert Saved("pack") in events
        assert resume["rows.step"].max() >= 50
        assert same(to_the_end(executor)[-1].result, train_alone(task))

    def test_a_pack_saves_now_and_then(self, slow, task, shelf):
        slow.submit("pack", replace(task, checkpoint_seconds=0.01), shelf)
        until(slow, Saved)
        saved = shelf.read((0, 1))
        while saved["rows.step"].max() == shelf.read((0, 1))["rows.step"].max():
            until(slow, Saved)

        assert isinstance(to_the_end(slow)[-1], Finished)

    def test_a_stop_ends_a_pack_with_its_checkpoint(self, slow, task, shelf):
        slow.submit("pack", task, shelf)
        until(slow, Progress)
        slow.stop()

        assert to_the_end(slow)[-1] == Stopped("pack")
        resumed = replace(task, resume=shelf.read((0, 1)))
        assert same(train_alone(resumed), train_alone(task))

    def test_a_pack_that_is_submitted_after_a_stop_stops(self, executor, task, shelf):
        executor.stop()
        executor.submit("pack", task, shelf)

        assert to_the_end(executor)[-1] == Stopped("pack")
        assert shelf.path.exists()

    def test_a_checkpoint_that_cannot_be_gone_on_from_is_told_as_that(self, executor, task, shelf):
        executor.submit("pack", replace(task, pause_step=50), shelf)
        to_the_end(executor)
        broken = {**shelf.read((0, 1)), "program.moments": np.zeros(3)}
        executor.submit("pack", replace(task, resume=broken), shelf)

        end = to_the_end(executor)[-1]

        assert isinstance(end, Failed)
        assert isinstance(end.error, UnusableCheckpointError)

    def test_the_last_state_comes_with_the_result(self, executor, task, shelf):
        executor.submit("pack", replace(task, keeps_state=True), shelf)

        assert to_the_end(executor)[-1].result.state["rows.step"].max() == task.study.max_steps

    # The race

    def test_a_pack_hears_of_the_end_that_another_has_set(self, executor, make_nqm, shelf):
        """The second would train to step 200: it is told an end of 30 by the first, which trains no further."""
        study = make_nqm({"sweep.max_steps": 200, "sweep.goal": "val/risk <= 1e-9"}).study(16)
        first = PackTask(study, [Point(0, {"learning_rate": 0.1})], end_step=30)
        second = PackTask(study, [Point(1, {"learning_rate": 0.1})], end_step=200)
        shelf = replace(shelf, study=study)

        executor.submit(1, first, shelf)
        to_the_end(executor)
        executor.submit(2, second, shelf)
        (outcome,) = to_the_end(executor)[-1].result.outcomes

        assert outcome.last_step == 30

    # Ends

    def test_a_worker_that_dies_is_lost_with_its_task_and_another_takes_its_place(self, slow, task, shelf):
        if self.kill_worker is None:
            pytest.skip("it cannot die alone")
        slow.submit("pack", replace(task, checkpoint_seconds=0.01), shelf)
        until(slow, Saved)
        type(self).kill_worker(slow)

        lost = to_the_end(slow)[-1]
        slow.submit("again", replace(task, resume=shelf.read((0, 1))), shelf)

        assert isinstance(lost, Lost) and lost.key == "pack" and lost.why
        assert same(to_the_end(slow)[-1].result, train_alone(task))

    def test_a_worker_that_dies_idle_costs_nothing(self, executor, study):
        if self.kill_worker is None:
            pytest.skip("it cannot die alone")
        executor.submit(1, Ask(study, "yes"))
        to_the_end(executor)
        type(self).kill_worker(executor)

        assert list(executor.events(0.5)) == []
        executor.submit(2, Ask(study, "yes"))
        assert to_the_end(executor) == [Finished(2, "yes")]

    def test_what_a_dead_worker_has_told_stays_told(self, executor, make_nqm, shelf):
        if self.kill_worker is None:
            pytest.skip("it cannot die alone")
        study = make_nqm({"sweep.max_steps": 200, "sweep.goal": "val/risk <= 1e-9"}).study(16)
        shelf = replace(shelf, study=study)
        executor.submit(1, PackTask(study, [Point(0, {"learning_rate": 0.1})], end_step=30), shelf)
        to_the_end(executor)
        type(self).kill_worker(executor)
        list(executor.events(0.5))
        executor.submit(2, PackTask(study, [Point(1, {"learning_rate": 0.1})], end_step=200), shelf)

        assert to_the_end(executor)[-1].result.outcomes[0].last_step == 30

    def test_closing_twice_and_in_the_middle_of_a_pack_is_fine(self, slow, task, shelf):
        slow.submit("pack", task, shelf)
        until(slow, Progress)

        slow.close()
        slow.close()
