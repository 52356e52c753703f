"""The choice of a pack size, on a clock that only moves when a fake program says so."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.workload import Named
from batchlab.engine import pack_size as pack_size_module
from batchlab.engine import timing
from batchlab.engine.base import Point, UpTo, wanted_pack_size
from batchlab.engine.pack_size import calibrate, fastest_pack_size


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing.time, "perf_counter", clock)
    return clock


class Burning:
    """A program whose update takes `seconds`; the first one, the warm-up, a hundred times as long."""

    def __init__(self, clock, num_trials, seconds):
        self.clock, self.seconds, self.step = clock, seconds, 0
        self.trial_ids, self.diverged = np.arange(num_trials), {}

    def state(self):
        return {"parameters": np.zeros((len(self.trial_ids), 1000), np.uint8)}

    def advance(self, target):
        self.clock.now += self.seconds * (100 if self.step == 0 else target - self.step)
        self.step = target


def choose(clock, seconds_of, num_trials):
    """Return the chosen size, its seconds, and the sizes that were tried; a step of K trials takes seconds_of[K]."""
    tried = []

    def make_program(size):
        tried.append(size)
        return Burning(clock, size, seconds_of(size))

    return *fastest_pack_size(make_program, num_trials), tried


def test_the_cheapest_size_per_trial_is_chosen(clock):
    """An overhead of 1 ms a step and 0.1 ms a trial: the larger the cheaper."""
    size, seconds, tried = choose(clock, lambda size: 1e-3 + 1e-4 * size, 64)

    assert size == 64
    assert seconds == pytest.approx((1e-3 + 64e-4) / 64)
    assert tried == [1, 4, 8, 16, 32, 64]


def test_a_model_that_gains_nothing_from_packing_trains_alone(clock):
    size, seconds, tried = choose(clock, lambda size: 1e-3 * size, 64)

    assert (size, tried) == (1, [1, 4, 8])
    assert seconds == pytest.approx(1e-3)


def test_one_failure_does_not_end_the_search(clock):
    """A cost per trial of 10, 5, 5, 2, 3, 3 ms: 8 is no better than 4, but 16 is."""
    per_trial = {1: 10e-3, 4: 5e-3, 8: 5e-3, 16: 2e-3, 32: 3e-3, 64: 3e-3}
    size, seconds, tried = choose(clock, lambda size: size * per_trial[size], 128)

    assert (size, tried) == (16, [1, 4, 8, 16, 32, 64])
    assert seconds == pytest.approx(2e-3)


def test_a_size_that_is_far_worse_ends_the_search(clock):
    size, _, tried = choose(clock, lambda size: 1e-3 * size if size == 1 else 3e-3 * size, 64)

    assert (size, tried) == (1, [1, 4])


def test_packs_that_might_not_fit_into_the_memory_are_not_tried(clock, monkeypatch):
    """A trial takes 2,000 bytes, and a quarter of 80,000 are for a pack: room for ten."""
    monkeypatch.setattr(pack_size_module, "machine_bytes", lambda: 80_000)
    size, _, tried = choose(clock, lambda size: 1e-3 + 1e-4 * size, 64)

    assert (size, tried) == (8, [1, 4, 8])


def test_a_gain_of_a_hundredth_is_no_gain(clock):
    size, _, _ = choose(clock, lambda size: size * (1e-3 if size < 4 else 0.99e-3), 4)

    assert size == 1


@pytest.mark.parametrize(
    ("num_trials", "expected"),
    [(1, [1]), (2, [1, 2]), (4, [1, 4]), (6, [1, 4, 6]), (32, [1, 4, 8, 16, 32]), (500, [1, 4, 8, 16, 32, 64, 128])],
)
def test_sizes_end_at_the_number_of_trials(clock, num_trials, expected):
    _, _, tried = choose(clock, lambda size: 1e-3, num_trials)

    assert tried == expected


def test_a_slow_program_is_timed_once(clock):
    """One update after the warm-up: a second is beyond the time for a measurement."""
    program = Burning(clock, 1, 1.0)

    size, seconds = fastest_pack_size(lambda size: program, 1)

    assert (size, seconds) == (1, pytest.approx(1.0))
    assert program.step == 2


class Noting:
    """A trainer that keeps the points it was asked for."""

    def __init__(self, clock):
        self.clock, self.points = clock, []

    def program(self, study, points, state=None):
        self.points += points
        return Burning(self.clock, len(points), 1e-3)


def test_the_measurement_trains_with_a_harmless_learning_rate(clock, make_digits_study):
    trainer = Noting(clock)

    calibrate(trainer, make_digits_study(), {"learning_rate": 10.0, "momentum": 0.99})

    assert trainer.points == [Point(0, {"learning_rate": 1e-9, "momentum": 0.99})]


def test_a_pack_of_a_large_batch_is_kept_out_of_memory(clock, make_digits_study):
    """4,096 examples at once at the most: 4 trials of 1,024, and none beside one of 4,096."""
    tried = {}
    for batch_size in (1024, 4096):
        trainer = Noting(clock)
        study = make_digits_study().model_copy(update={"trials": 100, "batch_size": batch_size})
        calibrate(trainer, study, {"learning_rate": 0.1})
        tried[batch_size] = max(point.trial_id for point in trainer.points) + 1

    assert tried == {1024: 4, 4096: 1}


def test_a_trainer_gets_no_metaparameter_that_its_study_does_not_have(clock, make_digits_study):
    trainer = Noting(clock)

    calibrate(trainer, make_digits_study(), {"temperature": 3.0})

    assert trainer.points == [Point(0, {"temperature": 3.0})]


def test_a_real_program_can_be_calibrated(trainer, make_digits_study, monkeypatch):
    monkeypatch.setattr(pack_size_module, "TIMED_SECONDS", 0.005)
    study = make_digits_study().model_copy(update={"trials": 4})

    size, seconds = calibrate(trainer, study, {"learning_rate": 1e9, "momentum": 0.9})

    assert size in (1, 4)
    assert 1e-6 < seconds < 1


def test_the_spec_goes_before_the_trainer_and_the_trainer_before_a_measurement(trainer, clock, make_digits_study):
    study = make_digits_study().model_copy(update={"trials": 100, "batch_size": 1024, "engine": {"pack_size": "auto"}})
    single = study.model_copy(update={"workload": study.workload.model_copy(update={"model": Named(name="resnet_8")})})
    told = study.model_copy(update={"engine": {"pack_size": 3}})

    assert wanted_pack_size(trainer, study) == UpTo(4)  # 4,096 examples
    assert wanted_pack_size(trainer, single) == 1
    assert wanted_pack_size(Noting(clock), single) == UpTo(4)  # a trainer that does not tell
    assert wanted_pack_size(trainer, told) == wanted_pack_size(Noting(clock), told) == 3
    assert wanted_pack_size(trainer, study.model_copy(update={"trials": 2})) == UpTo(2)


class Telling(Noting):
    """A trainer that tells its pack size."""

    def pack_size(self, study):
        return self.told


@pytest.mark.parametrize(
    ("told", "chosen", "most"), [(1, 1, 1), (3, 3, 3), (9, 9, 4), (UpTo(2), 2, 2), (UpTo(9), 4, 4)]
)
def test_a_trainer_that_tells_its_pack_size_is_asked(clock, make_digits_study, told, chosen, most):
    """A step takes 1 ms whatever the size, so the largest is the best; the study has four trials to time it with."""
    trainer = Telling(clock)
    trainer.told = told
    study = make_digits_study().model_copy(update={"trials": 4, "engine": {}})

    size, seconds = calibrate(trainer, study, {"learning_rate": 0.1})

    assert size == chosen
    assert max(point.trial_id for point in trainer.points) + 1 == most
    assert seconds == pytest.approx(1e-3 / most)


def test_a_model_that_trains_one_by_one_is_measured_alone(trainer, make_digits_study, monkeypatch):
    monkeypatch.setattr(pack_size_module, "TIMED_SECONDS", 0.005)
    study = make_digits_study().model_copy(update={"trials": 4, "batch_size": 2})
    single = study.model_copy(update={"workload": study.workload.model_copy(update={"model": Named(name="resnet_8")})})

    size, seconds = calibrate(trainer, single, {"learning_rate": 0.1, "momentum": 0.9})

    assert size == 1
    assert 1e-6 < seconds < 1
