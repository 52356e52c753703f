"""Measuring step times: a worker whose speed is known, and the real engine."""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np
import pytest

from batchlab.analysis import StepsCurve, make_plan
from batchlab.analysis.times.efficiency import weak_efficiencies
from batchlab.analysis.times.link import FittedLink, StepExchange
from batchlab.core.sweep import Sweep
from batchlab.engine import timing
from batchlab.engine.device import device_label
from batchlab.engine.gang.exchange_timing import SUM_BYTES
from batchlab.errors import InputError, SpecError
from batchlab.link.hub import check_link
from batchlab.link.link import Link
from batchlab.plan import scaling, teams
from batchlab.plan.scaling import measure_throughput
from batchlab.report.step_times import measured_throughput
from batchlab.report.words.plan import plan_notes
from batchlab.run.executors.here import HereExecutor
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


class Team(Sleeper):
    """Some workers of known speed, as their first one shows them: steps and sums over a link of known speed."""

    def __init__(self, sleep, t0: float, tau: float, link: StepExchange, workers: int = 1) -> None:
        super().__init__(sleep, t0, tau)
        self.link, self.workers = link, workers

    def check_shared(self, study, num_workers):
        if study.batch_size % num_workers:
            raise SpecError(f"{study.batch_size} cannot be shared by {num_workers}.")

    def program(self, study, points, state=None):
        num_bytes = points[0].metaparameters.get(SUM_BYTES)
        if num_bytes is not None:
            return SleepingSums(self.sleep, self.link.link.seconds(self.workers, num_bytes))
        seconds = self.t0 + study.batch_size / self.workers / self.tau + self.link.seconds(self.workers)
        program = SleepingProgram(self.sleep, seconds, points)
        program.payloads = self.link.payloads if self.workers > 1 else ()
        return program


class SleepingSums:
    """Sums of a known time, to the first of which after a pause the others come late."""

    def __init__(self, sleep, seconds: float) -> None:
        self._sleep, self._seconds, self.seconds = sleep, seconds, []

    def advance(self, target: int) -> None:
        late = True
        while len(self.seconds) < target:
            self.seconds.append(self._seconds * (1 + late))
            late = False


LINK = StepExchange(
    link=FittedLink(form="gloo", latency=0.003, bandwidth=2e7), payloads=(300_000, 1_200_000), waited=0.8
)


@pytest.fixture
def measure_team(monkeypatch):
    """Return what measures simulated workers of a clock of their own; each of their numbers is one worker here."""
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    monkeypatch.setattr(scaling, "check_gang", lambda trainer, size: None)

    def start(sweep, trainer, workers, gpus, link):
        return HereExecutor(Team(clock.sleep, trainer.t0, trainer.tau, trainer.link, workers), [])

    monkeypatch.setattr(teams, "start_team", start)
    return partial(measure_throughput, SWEEP, Team(clock.sleep, 0.02, 1000.0, LINK))


def test_workers_of_known_speed_over_a_known_link_are_recovered(measure_team):
    record = measure_team(workers=(1, 2, 4), repeats=6)

    fit = measured_throughput(record).fit
    assert fit.t0 == pytest.approx(0.02, rel=1e-6)
    assert fit.tau == pytest.approx(1000, rel=1e-6)
    assert fit.all_reduce.link.latency == pytest.approx(0.003, rel=1e-6)
    assert fit.all_reduce.link.bandwidth == pytest.approx(2e7, rel=1e-6)
    assert fit.all_reduce.waited == pytest.approx(0.8, rel=1e-6)
    assert record.payloads == LINK.payloads
    assert len(record.times) == 9
    assert {(each.num_bytes, each.workers) for each in record.sums} == {
        (n, k) for n in scaling.SUM_BYTES for k in (2, 4)
    }
    assert all(len(each.seconds) == 6 for each in (*record.times, *record.sums))


def test_plans_count_on_the_exchange_that_was_measured(measure_team):
    record = measure_team(workers=(1, 2), repeats=6).model_copy(update={"machine": {"cores": 2}})

    plan = make_plan(StepsCurve(s_min=100, e_min=51_200), measured_throughput(record), max_workers=8)

    rows = {(row.batch_size, row.workers): row for row in plan.rows}
    for (size, workers), row in rows.items():
        local = math.ceil(size / workers)
        assert row.step_seconds.value == pytest.approx(0.02 + local / 1000 + LINK.seconds(workers), rel=1e-6)
    assert not rows[64, 2].step_seconds.is_extrapolated
    assert rows[64, 8].step_seconds.is_extrapolated
    assert not any("counted as zero" in note for note in plan_notes(plan, None))


def test_weak_batch_sizes_are_those_of_each_worker(measure_team):
    record = measure_team(workers=(1, 4), is_weak=True, repeats=1)

    assert [(each.batch_size, each.workers) for each in record.times] == [
        *((8, 1), (64, 1), (512, 1)),
        *((32, 4), (256, 4), (2048, 4)),
    ]
    times = measured_throughput(record).times
    assert weak_efficiencies(times)[-1] == pytest.approx(times[2].seconds[0] / times[-1].seconds[0])


def test_what_cannot_be_shared_is_left_out_and_said(measure_team):
    told = []

    record = measure_team(workers=(1, 16), repeats=1, tell=told.append)

    assert (8, 16) not in [(each.batch_size, each.workers) for each in record.times]
    assert told[0] == "left out: batch size 8 on 16 workers. 8 cannot be shared by 16."
    with pytest.raises(InputError, match="No batch size is left for 1024 workers. 512 cannot be shared by 1024"):
        measure_team(workers=(1, 1024))


def test_a_trainer_of_one_worker_is_refused_before_anything_is_done():
    with pytest.raises(InputError, match="engine.workers_per_trial = 2: a network that was written at a prompt"):
        measure_throughput(SWEEP, Sleeper(time.sleep, 1.0, 1.0), workers=(1, 2))


@pytest.mark.slow
def test_a_gang_over_a_link_recovers_its_latency_and_bandwidth_within_fifteen_per_cent():
    try:
        check_link()
    except InputError as error:
        pytest.skip(str(error))
    sweep = load_sweep("digits", ["sweep.batch_sizes=[16, 256]"])

    record = measure_throughput(
        sweep, make_trainer(sweep, None), workers=(1, 2), link=Link.parse("latency=10ms,bandwidth=50mbit"), repeats=3
    )

    throughput = measured_throughput(record)
    link = throughput.fit.all_reduce.link
    assert throughput.link.added_latency(link).value == pytest.approx(0.010, rel=0.15)
    assert 8e-6 * link.bandwidth == pytest.approx(50, rel=0.15)
    assert record.seen.round_trip == pytest.approx(0.020, rel=0.15)
    assert record.link == "latency=10ms,bandwidth=50mbit"


def test_one_batch_size_is_refused():
    sweep = load_sweep("digits", ["sweep.batch_sizes=[4]"])

    with pytest.raises(InputError, match="give two or more"):
        measure_throughput(sweep, Sleeper(time.sleep, 1.0, 1.0))


def test_a_formula_has_no_step_time():
    with pytest.raises(InputError, match="computed by a formula"):
        measure_throughput(load_sweep("nqm"), Sleeper(time.sleep, 1.0, 1.0))


def test_a_gpu_is_named_by_its_model(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda name: f"a model at {name}")

    assert device_label("cuda:1") == "cuda:1 (a model at cuda:1)"
    assert device_label("cpu") == "cpu"
