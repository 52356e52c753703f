"""What observers of built-in networks report: stored by worker processes, and the same after a stop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from batchlab.data import digits
from batchlab.engine.base import Point
from batchlab.engine.observer import Observer
from batchlab.engine.torch_trainer import TorchTrainer
from batchlab.errors import BatchlabError, InputError, Interrupted
from batchlab.run.pack import Hooks, PackTask, train_pack
from batchlab.run.resume import UnusableCheckpointError
from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab


class Spread(Observer):
    """The squared norm of the gradients of microbatches: a moving average."""

    metrics = ("train/spread",)

    def start(self, parameters):
        return {"spread": parameters.new_zeros(len(parameters))}

    def see_microbatch(self, state, microbatch):
        state["spread"].lerp_(microbatch.gradients.square().sum(1) / microbatch.share, 0.1)

    def report(self, state):
        return {"train/spread": state["spread"]}


@pytest.fixture
def sweep(make_digits):
    return make_digits(
        {
            "sweep.batch_sizes": [8],
            "sweep.max_steps": 40,
            "sweep.trials": 2,
            "sweep.protocol": "full",
            "engine.microbatch_size": 3,
            "engine.pack_size": 2,
        }
    )


def make_task(sweep):
    study = sweep.study(8)
    points = [Point(trial, study.metaparameters({"learning_rate": 0.05, "momentum": 0.9})) for trial in range(2)]
    return PackTask(study, points, study.max_steps)


def train(trainer, task, stop_after=None, keep=lambda checkpoint: None):
    """Train a pack here; it is stopped once it was asked `stop_after` times whether it should."""
    asked = []

    def should_stop():
        asked.append(True)
        return len(asked) == stop_after

    return train_pack(trainer, task, Hooks(lambda: task.end_step, lambda end: None, lambda *_: None, should_stop, keep))


def test_workers_store_what_observers_report_and_all_else_is_as_without(sweep, tmp_path, one_thread):
    run_sweep(sweep, tmp_path / "lab", num_workers=1, observers=[Spread()])

    (result,) = Lab.open(tmp_path / "lab").results(sweep).results
    points = [Point(trial.trial_id, trial.metaparameters) for trial in result.trials]
    task = PackTask(sweep.study(8), points, 40)
    expected = train(TorchTrainer(digits.load(), "cpu", microbatch_size=3), task).measurements
    found, spread = result.measurements, result.measurements.metrics["train/spread"]
    assert np.array_equal(found.step, expected.step)
    assert found.metrics.keys() == expected.metrics.keys() | {"train/spread"}
    assert all(np.array_equal(found.metrics[name], expected.metrics[name]) for name in expected.metrics)
    assert (spread[found.step == 0] == 0).all()
    assert (spread[found.step > 0] > 0).all()


def test_a_pack_that_is_stopped_five_times_reports_the_same_bits(sweep, one_thread):
    trainer = TorchTrainer(digits.load(), "cpu", microbatch_size=3, observers=[Spread()])
    task, kept = make_task(sweep), []
    whole = train(trainer, task).measurements

    for _ in range(5):
        with pytest.raises(Interrupted):
            train(trainer, task, stop_after=3, keep=kept.append)
        task = replace(task, resume=kept[-1])

    resumed = train(trainer, task).measurements
    assert np.array_equal(resumed.step, whole.step)
    assert resumed.metrics.keys() == whole.metrics.keys()
    assert all(np.array_equal(resumed.metrics[name], whole.metrics[name]) for name in whole.metrics)


def test_a_checkpoint_without_the_observer_is_not_gone_on_from(sweep, one_thread):
    """What it would report of the steps before nobody knows: the pack begins anew."""
    task, kept, dataset = make_task(sweep), [], digits.load()
    with pytest.raises(Interrupted):
        train(TorchTrainer(dataset, "cpu", microbatch_size=3), task, stop_after=3, keep=kept.append)
    task = replace(task, resume=kept[-1])

    with pytest.raises(UnusableCheckpointError, match=r"it lacks observer\.0\.spread"):
        train(TorchTrainer(dataset, "cpu", microbatch_size=3, observers=[Spread()]), task)


def test_what_is_no_network_of_ours_has_no_gradients_to_see(make_nqm, make_scripted, scripted, tmp_path):
    with pytest.raises(InputError, match="observers: nqm/quadratic/sgd is no network that batchlab trains"):
        run_sweep(make_nqm(), tmp_path / "lab", observers=[Spread()])
    with pytest.raises(InputError, match="let your trainer ask them"):
        run_sweep(make_scripted(), tmp_path / "lab", trainer=scripted(), observers=[Spread()])
    with pytest.raises(InputError, match=r"give an object, Spread\(\)"):
        run_sweep(make_nqm(), tmp_path / "lab", observers=[Spread])
    assert not (tmp_path / "lab").exists()


def test_an_observer_that_no_worker_can_import_is_told_of(sweep, tmp_path):
    local = type("Local", (Spread,), {"__module__": "__main__"})

    with pytest.raises(BatchlabError, match="Local"):
        run_sweep(sweep, tmp_path / "lab", num_workers=1, observers=[local()])
