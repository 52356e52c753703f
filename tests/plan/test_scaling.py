"""Measuring step times: a worker whose speed is known, and the real engine."""

from __future__ import annotations

import time

import numpy as np
import pytest

from batchlab.core.sweep import Sweep
from batchlab.engine import timing
from batchlab.engine.device import device_label
from batchlab.errors import InputError
from batchlab.plan.scaling import measure_throughput
from batchlab.report.planned import measured_throughput
from batchlab.run.trainers import make_trainer
from batchlab.spec.load import load_sweep

SWEEP = Sweep.parse(
    {
        "name": "asleep",
        "workload": {"dataset": "none", "model": "sleep", "optimizer": "none"},
        "sweep": {"batch_sizes": [8, 64, 512], "trials": 1, "max_steps": 1000, "goal": "val/loss < 1"},
        "search_space": {"learning_rate": {"min": 0.1, "max": 1.0}},
    },
    "a test",
)


class Clock:
    """A time of day that only passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Sleeper:
    """A trainer, and the programs it makes: a step takes t0 + b / tau, and the first ones ten times as long."""

    stays_here = True

    def __init__(self, sleep, t0: float, tau: float) -> None:
        self.sleep, self.t0, self.tau = sleep, t0, tau

    def metrics(self, study):
        return ("val/loss",)

    def program(self, study, points, state=None):
        return SleepingProgram(self.sleep, self.t0 + study.batch_size / self.tau, points)


class SleepingProgram:
    def __init__(self, sleep, seconds: float, points) -> None:
        self.step, self.diverged, self._sleep, self._seconds = 0, {}, sleep, seconds
        self.trial_ids = np.array([point.trial_id for point in points])

    def advance(self, target: int) -> None:
        while self.step < target:
            self._sleep(self._seconds * (10 if self.step < 4 else 1))
            self.step += 1


def test_a_worker_of_known_speed_is_recovered(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)

    record = measure_throughput(SWEEP, Sleeper(clock.sleep, 0.02, 1000.0), repeats=6)

    fit = measured_throughput(record).fit
    assert fit.t0 == pytest.approx(0.02, rel=1e-6)
    assert fit.tau == pytest.approx(1000, rel=1e-6)
    assert [each.batch_size for each in record.times] == [8, 64, 512]
    assert all(len(each.seconds) == 6 for each in record.times)


@pytest.mark.slow
def test_a_worker_that_really_sleeps_is_recovered_within_five_per_cent():
    record = measure_throughput(SWEEP, Sleeper(time.sleep, 0.06, 4000.0), repeats=6, seconds=0.01)

    fit = measured_throughput(record).fit
    assert fit.t0 == pytest.approx(0.06, rel=0.05)
    assert fit.tau == pytest.approx(4000, rel=0.05)


def test_a_real_network_is_timed_and_nothing_of_it_is_kept():
    sweep = load_sweep("digits", ["sweep.batch_sizes=[4, 256]"])
    told = []

    record = measure_throughput(sweep, make_trainer(sweep, None), repeats=2, seconds=0.02, tell=told.append)

    assert record.workload == "digits/fc_128/nesterov_momentum"
    assert record.device == "cpu"
    assert record.train_examples == 1297
    assert record.machine["packages"]["torch"]
    assert [each.batch_size for each in record.times] == [4, 256]
    assert all(0 < seconds < 5 for each in record.times for seconds in each.seconds)
    assert len(told) == 2


def test_several_workers_are_refused_before_anything_is_done():
    with pytest.raises(InputError, match="--workers 2: one trial on several workers cannot be measured yet"):
        measure_throughput(SWEEP, Sleeper(time.sleep, 1.0, 1.0), workers=(1, 2))


def test_one_batch_size_is_refused():
    sweep = load_sweep("digits", ["sweep.batch_sizes=[4]"])

    with pytest.raises(InputError, match="give two --batch-sizes"):
        measure_throughput(sweep, Sleeper(time.sleep, 1.0, 1.0))


def test_a_formula_has_no_step_time():
    with pytest.raises(InputError, match="computed by a formula"):
        measure_throughput(load_sweep("nqm"), Sleeper(time.sleep, 1.0, 1.0))


def test_a_gpu_is_named_by_its_model(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda name: f"a model at {name}")

    assert device_label("cuda:1") == "cuda:1 (a model at cuda:1)"
    assert device_label("cpu") == "cpu"
