"""The training loop: which steps it evaluates, and when it ends."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.engine import loop as loop_module
from batchlab.engine.loop import train
from batchlab.errors import TrainerError


class Counting:
    """A program that does nothing but count; trial i diverges at `diverges[i]`, and a chunk has five updates."""

    def __init__(self, num_trials=3, step=0, diverges=None):
        self.step, self.trial_ids, self.diverged = step, np.arange(num_trials), {}
        self.diverges, self.advanced = diverges or {}, []

    def advance(self, target):
        assert target > self.step
        self.step = min(target, self.step + 5)
        self.advanced.append(self.step)
        for trial_id, step in self.diverges.items():
            if step <= self.step and trial_id in self.trial_ids:
                self.diverged[trial_id] = step
                self.trial_ids = self.trial_ids[self.trial_ids != trial_id]

    def evaluate(self):
        return {"val/classification_error": np.full(len(self.trial_ids), float(self.step))}

    def state(self):
        return {}


def steps_of(program, study, end_step):
    return [evaluated.step for evaluated in train(program, study, end_step)]


def test_every_evaluated_step_is_yielded_from_0_to_the_last(make_digits_study):
    study = make_digits_study(max_steps=23, every=10)

    assert steps_of(Counting(), study, lambda: 23) == [0, 10, 20, 23]


def test_growing_steps_are_those_of_the_evaluation(make_digits_study):
    study = make_digits_study(max_steps=10, growth=1.5)

    assert steps_of(Counting(), study, lambda: 10) == [0, 1, 2, 3, 5, 8, 10]


def test_the_end_is_honoured_when_it_comes_nearer(make_digits_study):
    """At first 100; the evaluation at step 20 brings it to 40."""
    study, end = make_digits_study(max_steps=100, every=10), 100
    program, steps = Counting(), []
    for evaluated in train(program, study, lambda: end):
        steps.append(evaluated.step)
        if evaluated.step == 20:
            end = 40

    assert steps == [0, 10, 20, 30, 40]
    assert program.step == 40


def test_an_end_in_the_past_ends_at_once(make_digits_study):
    study, program = make_digits_study(max_steps=100, every=10), Counting()
    ends = iter([100, 100, 5])

    assert steps_of(program, study, lambda: next(ends)) == [0, 10, 20]


def test_an_end_at_0_still_measures_step_0(make_digits_study):
    assert steps_of(Counting(), make_digits_study(every=10), lambda: 0) == [0]


def test_rows_are_those_of_the_live_trials(make_digits_study):
    study, program = make_digits_study(max_steps=30, every=10), Counting(diverges={1: 12})

    rows = list(train(program, study, lambda: 30))

    assert [row.trial_ids.tolist() for row in rows] == [[0, 1, 2], [0, 1, 2], [0, 2], [0, 2]]
    assert [row.metrics["val/classification_error"].tolist() for row in rows] == [
        [0, 0, 0],
        [10, 10, 10],
        [20, 20],
        [30, 30],
    ]


def test_it_ends_when_no_trial_is_left(make_digits_study):
    study, program = make_digits_study(max_steps=100, every=10), Counting(2, diverges={0: 3, 1: 14})

    assert steps_of(program, study, lambda: 100) == [0, 10]
    assert program.step == 15


@pytest.mark.parametrize(("step", "expected"), [(0, [0, 10, 20, 30]), (7, [10, 20, 30]), (10, [10, 20, 30])])
def test_a_restored_program_first_finishes_its_interval(make_digits_study, step, expected):
    study = make_digits_study(max_steps=30, every=10)

    assert steps_of(Counting(step=step), study, lambda: 30) == expected


def test_between_chunks_is_called_after_each_of_them(make_digits_study):
    study, program, seen = make_digits_study(max_steps=20, every=10), Counting(), []

    list(train(program, study, lambda: 20, lambda: seen.append(program.step)))

    assert seen == program.advanced == [5, 10, 15, 20]


def test_what_between_chunks_raises_stops_the_training(make_digits_study):
    def stop():
        raise KeyboardInterrupt

    program = Counting()
    with pytest.raises(KeyboardInterrupt):
        list(train(program, make_digits_study(max_steps=20, every=10), lambda: 20, stop))

    assert program.step == 5


@pytest.mark.parametrize(
    ("moves", "sentence"),
    [
        (0, "advance(10) left `step` at 0: make at least one update and count it in `step`."),
        (-1, "advance(10) left `step` at -1: make at least one update"),
        (11, "advance(10) went on to step 11: train at most 10 updates from step 0 and count each in `step`."),
    ],
)
def test_a_program_that_stands_still_or_runs_past_its_target_is_refused(make_digits_study, moves, sentence):
    program = Counting()
    program.advance = lambda target: setattr(program, "step", program.step + moves)

    with pytest.raises(TrainerError) as caught:
        list(train(program, make_digits_study(max_steps=20, every=10), lambda: 20))

    assert sentence in str(caught.value)


def test_a_program_whose_last_trial_has_left_need_not_move(make_digits_study):
    program = Counting(1)
    program.advance = lambda target: setattr(program, "trial_ids", np.array([], dtype=np.int64))

    assert steps_of(program, make_digits_study(max_steps=20, every=10), lambda: 20) == [0]


def test_the_time_of_an_evaluation_is_told(make_digits_study, monkeypatch):
    now = iter([1.0, 1.5])
    monkeypatch.setattr(loop_module.time, "perf_counter", lambda: next(now))

    (row,) = train(Counting(), make_digits_study(every=10), lambda: 0)

    assert row.seconds == 0.5
