"""Sweeps from end to end, in real worker processes."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

import numpy as np
import pytest

from batchlab.analysis import steps_to_result
from batchlab.core.trial import Status
from batchlab.errors import InputError, Interrupted, LabLockedError, SpecError, TrialError
from batchlab.run import runner
from batchlab.run.displays import SilentDisplay
from batchlab.run.executors.executor import Paused
from batchlab.run.run_sweep import run_sweep
from batchlab.run.study_run import StudyRun
from batchlab.store.lab import Lab
from batchlab.store.set_aside import SetAside
from batchlab.store.study_folder import StudyFolder


def stored(lab, sweep):
    """Return the bytes of every column of every study, and what its trials were and did."""
    results = Lab.open(lab).results(sweep)
    assert (results.unfinished, results.problems) == ([], [])
    return {
        result.batch_size: (
            result.end_step,
            [
                (trial.trial_id, trial.status, trial.last_step, trial.diverged_step, trial.round, trial.metaparameters)
                for trial in result.trials
            ],
            result.measurements.trial_id.tobytes(),
            result.measurements.step.tobytes(),
            {name: values.tobytes() for name, values in result.measurements.metrics.items()},
        )
        for result in results.results
    }


def answers(lab, sweep):
    """Return the steps to the goal, the trial and its metaparameters for each batch size."""
    points = [steps_to_result(result, sweep.search.hardest_goal) for result in Lab.open(lab).results(sweep).results]
    return [(point.batch_size, point.steps, point.trial.trial_id, point.trial.metaparameters) for point in points]


def trained_steps(lab, sweep):
    records = [Lab.open(lab).study_folder(sweep.name, study.batch_size).record() for study in sweep.studies()]
    return sum(record.trained_steps for record in records)


# The noisy quadratic model


def test_what_is_stored_does_not_depend_on_the_number_of_workers(make_nqm, tmp_path):
    """Four packs for each batch size, so that two workers can be at one study."""
    sweep = make_nqm({"engine.pack_size": 3})

    for num_workers in (1, 2):
        run_sweep(sweep, tmp_path / str(num_workers), num_workers=num_workers)

    assert stored(tmp_path / "1", sweep) == stored(tmp_path / "2", sweep)
    assert len(stored(tmp_path / "1", sweep)) == 3


def test_the_pack_size_of_the_spec_is_used(make_nqm, tmp_path):
    sweep = make_nqm({"engine.pack_size": 5, "sweep.batch_sizes": [16]})

    run_sweep(sweep, tmp_path / "lab", num_workers=1)

    assert Lab.open(tmp_path / "lab").study_folder("nqm", 16).record().pack_size == 5


def test_the_quadratic_model_trains_all_its_trials_together_unless_told(make_nqm, tmp_path):
    sweep = make_nqm({"sweep.batch_sizes": [16]})

    run_sweep(sweep, tmp_path / "lab", num_workers=1)

    assert Lab.open(tmp_path / "lab").study_folder("nqm", 16).record().pack_size == 12


def test_the_race_and_the_full_protocol_agree_on_the_full_grid(make_nqm, tmp_path):
    sweeps = [make_nqm({"sweep.protocol": protocol}) for protocol in ("race", "full")]
    for sweep in sweeps:
        run_sweep(sweep, tmp_path / sweep.search.protocol, num_workers=1)
    race, full = (answers(tmp_path / sweep.search.protocol, sweep) for sweep in sweeps)

    assert race == full
    assert [batch_size for batch_size, *_ in race] == [1, 16, 256]
    assert all(steps is not None for _, steps, *_ in race)
    assert trained_steps(tmp_path / "race", make_nqm()) < trained_steps(tmp_path / "full", make_nqm()) == 3 * 12 * 400


def test_a_finished_sweep_is_not_trained_again(make_nqm, tmp_path):
    sweep = make_nqm({"sweep.batch_sizes": [16]})
    run_sweep(sweep, tmp_path / "lab", num_workers=1)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "lab" / "sweeps").rglob("*") if path.is_file()}

    run_sweep(sweep, tmp_path / "lab", trainer=FailingTrainer("val/risk"), num_workers=1)

    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "lab" / "sweeps").rglob("*") if path.is_file()}
    assert after == before


def test_another_spec_of_the_same_name_is_refused_before_anything_is_trained(make_nqm, tmp_path):
    run_sweep(make_nqm({"sweep.batch_sizes": [16]}), tmp_path / "lab", num_workers=1)

    with pytest.raises(SpecError, match=r"sweep.max_steps: 400 -> 300"):
        run_sweep(make_nqm({"sweep.batch_sizes": [16], "sweep.max_steps": 300}), tmp_path / "lab", num_workers=1)


@pytest.mark.parametrize("only", [range(-3, 2), range(12, 14), range(5, 2), [0, 1, 1], "0..3"])
def test_points_that_a_sweep_has_not_are_refused(make_nqm, tmp_path, only):
    """Point -1 would have been the last one, and a point that is named twice one trial with two results."""
    with pytest.raises(InputError, match=r"^only = .*: the points of this sweep are 0\.\.11; give a range of them"):
        run_sweep(make_nqm(), tmp_path / "lab", only=only)

    assert not (tmp_path / "lab").exists()


def test_a_lab_in_use_is_refused(make_nqm, tmp_path):
    with Lab.create(tmp_path / "lab").locked(), pytest.raises(LabLockedError, match=f"process {os.getpid()}"):
        run_sweep(make_nqm(), tmp_path / "lab", num_workers=1)


# Networks


@pytest.mark.slow
def test_digits_do_not_depend_on_the_number_of_workers(make_digits, tmp_path):
    """The same pack size, one and two processes: the same bits."""
    sweep = make_digits()

    for num_workers in (1, 2):
        run_sweep(sweep, tmp_path / str(num_workers), num_workers=num_workers)

    first = stored(tmp_path / "1", sweep)
    assert first == stored(tmp_path / "2", sweep)
    assert any(steps is not None for _, steps, *_ in answers(tmp_path / "1", sweep))


def test_the_pack_size_is_measured_once_and_kept(make_digits, tmp_path):
    sweep = make_digits({"engine.pack_size": "auto", "sweep.batch_sizes": [64], "sweep.max_steps": 5})

    run_sweep(sweep, tmp_path / "lab", num_workers=1)
    chosen = Lab.open(tmp_path / "lab").study_folder("digits", 64).record().pack_size

    assert chosen in (1, 4, 6)
    assert f'"pack_size": {chosen}' in (tmp_path / "cache" / "batchlab" / "calibration.json").read_text()


@pytest.mark.slow
def test_the_race_and_the_full_protocol_agree_on_digits(make_digits, tmp_path):
    changes = {
        "sweep.batch_sizes": [8, 64, 512],
        "sweep.trials": 8,
        "sweep.max_steps": 1000,
        "sweep.goal": "val/classification_error < 0.06",
        "engine.pack_size": 8,
    }
    for protocol in ("race", "full"):
        run_sweep(make_digits({**changes, "sweep.protocol": protocol}), tmp_path / protocol, num_workers=2)
    sweep = make_digits(changes)

    assert answers(tmp_path / "race", sweep) == answers(tmp_path / "full", sweep)
    assert all(steps is not None for _, steps, *_ in answers(tmp_path / "race", sweep))
    assert trained_steps(tmp_path / "race", sweep) < trained_steps(tmp_path / "full", sweep)


# A user's own trainer


class OwnTrainer:
    """Gradient descent on a parabola of its own, as a user might write it: no part of batchlab but the seam."""

    def metrics(self, study):
        return ("val/distance",)

    def program(self, study, points, state=None):
        return OwnProgram(points, state)


class OwnProgram:
    def __init__(self, points, state):
        self.trial_ids = np.array([point.trial_id for point in points])
        self.rates = np.array([point.metaparameters["learning_rate"] for point in points])
        self.diverged = {}
        self.step = 0 if state is None else int(state["step"])
        self.positions = np.ones(len(points)) if state is None else state["positions"]

    def evaluate(self):
        return {"val/distance": np.abs(self.positions)}

    def advance(self, target):
        self.positions = self.positions * (1 - self.rates)
        self.step += 1

    def state(self):
        return {"step": np.array(self.step), "positions": self.positions}


def test_a_users_own_trainer_is_as_good_as_any(make_scripted, tmp_path):
    """A learning rate r leaves (1 - r)^t of the way after t steps: by hand for each trial."""
    sweep = make_scripted({"sweep.goal": "val/distance < 0.01", "sweep.evaluate": {"every": 1}})

    run_sweep(sweep, tmp_path / "lab", trainer=OwnTrainer(), num_workers=1)
    (result,) = Lab.open(tmp_path / "lab").results(sweep).results

    assert [trial.status for trial in result.trials] == [Status.COMPLETE] * 4
    for trial in result.trials:
        curve = result.measurements.curve(trial.trial_id)
        expected = (1 - trial.metaparameters["learning_rate"]) ** curve.steps
        np.testing.assert_allclose(curve.metrics["val/distance"], expected, rtol=1e-9)
    rates = [trial.metaparameters["learning_rate"] for trial in result.trials]
    fewest = min(np.ceil(np.log(0.01) / np.log(1 - rate)) for rate in rates)
    assert steps_to_result(result, sweep.search.hardest_goal).steps == fewest


def test_diverged_trials_are_replaced(make_scripted, scripted, tmp_path):
    """Four asked for: 1 and 2 diverge, then 4 of the two that replace them; 5 diverges after the race is over."""
    trainer = scripted(goal_at={3: 40}, diverges_at={1: 5, 2: 60, 4: 33, 5: 65})

    run_sweep(make_scripted(), tmp_path / "lab", trainer=trainer, num_workers=2)
    (result,) = Lab.open(tmp_path / "lab").results(make_scripted()).results

    assert result.end_step == 60
    assert [(trial.trial_id, str(trial.status), trial.round) for trial in result.trials] == [
        *[(0, "COMPLETE", 1), (1, "INFEASIBLE", 1), (2, "INFEASIBLE", 1), (3, "COMPLETE", 1)],
        *[(4, "INFEASIBLE", 2), (5, "COMPLETE", 2), (6, "COMPLETE", 3)],
    ]


class FailingTrainer:
    def __init__(self, metric="val/loss"):
        self.metric = metric

    def metrics(self, study):
        return (self.metric,)

    def program(self, study, points, state=None):
        raise ZeroDivisionError("nothing can be divided by me")


def test_a_trainer_that_does_not_measure_the_goal_is_refused_before_anything_is_written(make_scripted, tmp_path):
    with pytest.raises(SpecError, match='Unknown metric "val/loss". Did you mean "val/lass"'):
        run_sweep(make_scripted(), tmp_path / "lab", trainer=FailingTrainer("val/lass"), num_workers=1)
    assert not (tmp_path / "lab").exists()


def test_a_trainer_that_raises_is_told_with_its_traceback(make_scripted, tmp_path):
    with pytest.raises(TrialError) as caught:
        run_sweep(make_scripted(), tmp_path / "lab", trainer=FailingTrainer(), num_workers=1)

    assert str(caught.value).startswith("A trial failed at batch size 8:\nTraceback (most recent call last):")
    assert "ZeroDivisionError: nothing can be divided by me" in str(caught.value)
    assert "test_runner.py" in str(caught.value)
    assert caught.value.exit_code == 1


class RefusingTrainer:
    def metrics(self, study):
        return ("val/loss",)

    def program(self, study, points, state=None):
        raise SpecError("engine.device cannot be used.")


def test_an_error_with_a_sentence_comes_through_as_it_is(make_scripted, tmp_path):
    with pytest.raises(SpecError, match=r"^engine.device cannot be used.$"):
        run_sweep(make_scripted(), tmp_path / "lab", trainer=RefusingTrainer(), num_workers=1)


@dataclass(frozen=True)
class DyingTrainer:
    """Ends its own process in the middle of the second pack, the first time."""

    inner: object
    flag: str

    def metrics(self, study):
        return self.inner.metrics(study)

    def program(self, study, points, state=None):
        program = self.inner.program(study, points, state)
        if points[0].trial_id == 2 and not os.path.exists(self.flag):
            advance = program.advance

            def die(target):
                if program.step > 20:
                    open(self.flag, "x").close()
                    os.kill(os.getpid(), signal.SIGKILL)
                advance(target)

            program.advance = die
        return program


def test_a_killed_worker_costs_nothing_but_time(make_scripted, scripted, tmp_path):
    sweep, inner = make_scripted(), scripted(goal_at={3: 40}, diverges_at={1: 5})
    trainer = DyingTrainer(inner, str(tmp_path / "died"))
    run_sweep(sweep, tmp_path / "straight", trainer=inner, num_workers=1)

    run_sweep(sweep, tmp_path / "lab", trainer=trainer, num_workers=1)

    assert (tmp_path / "died").exists()
    assert stored(tmp_path / "lab", sweep) == stored(tmp_path / "straight", sweep)


class SlowToStop:
    """An executor whose one pack goes on for a while after it was told to stop."""

    num_workers = 1

    def __init__(self, said):
        self._said, self._key, self._was_stopped = said, None, False

    @property
    def num_idle(self):
        return int(self._key is None)

    def submit(self, key, task, shelf=None):
        self._key = key

    def events(self, timeout):
        if not self._was_stopped:
            os.kill(os.getpid(), signal.SIGTERM)
        elif any("Still waiting" in sentence for sentence in self._said):
            key, self._key = self._key, None
            yield Paused(key)

    def stop(self):
        self._was_stopped = True

    def close(self):
        pass


def test_a_stop_that_takes_long_is_spoken_of_once(make_scripted, scripted, tmp_path, monkeypatch):
    said = []
    display = SilentDisplay()
    display.say = said.append
    monkeypatch.setattr(runner, "PATIENCE_SECONDS", 0.0)
    run = StudyRun(make_scripted().study(8), StudyFolder(tmp_path / "8"))
    run.choose_pack_size(4)
    filled = runner.Runner([run], scripted(), lambda sizes: SlowToStop(said), display, SetAside(tmp_path))

    with pytest.raises(Interrupted):
        filled.run()

    assert said == [
        "Stopping: writing checkpoints (again to stop at once).",
        "Still waiting for trials to reach a point where they can stop (again to stop at once).",
    ]
