"""Studies whose batch size grows: raced, confirmed, stopped, grown and limited by examples, always to the same rows."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from batchlab.core.clock import Clock, Clocks, Horizon
from batchlab.core.sweep import Sweep
from batchlab.data import digits
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.engine.torch_trainer import TorchTrainer
from batchlab.errors import Interrupted, SpecError
from batchlab.optim.schedules import staircase
from batchlab.run.pack import Hooks, train_pack
from batchlab.run.run_sweep import run_sweep
from batchlab.run.study_run import StudyRun
from batchlab.store.archive.exporter import export_lab
from batchlab.store.archive.importer import import_archive
from batchlab.store.lab import Lab
from batchlab.store.query import connect
from batchlab.store.study_folder import StudyFolder
from batchlab.verify.lab import verify_lab

STAIRS = {"name": "staircase", "of": "batch_size", "stage_factor": 2, "stage_limit": 64}


def make_sweep(workload, space, **plan):
    data = {
        "name": "grows",
        "workload": workload,
        "sweep": {"batch_sizes": [4], "trials": 4, "max_steps": 300, "evaluate": {"growth": 1.3}, **plan},
        "search_space": {**space, "stage_length": {"min": 50, "max": 400, "scale": "log"}},
    }
    return Sweep.parse(data, "test")


def nqm(**plan):
    workload = {"dataset": {"name": "nqm", "dimension": 10}, "model": "quadratic", "optimizer": "sgd"}
    rates = {"learning_rate": {"min": 0.05, "max": 2.5, "scale": "log"}}
    return make_sweep({**workload, "schedule": STAIRS}, rates, **{"goal": "val/risk < 0.03", **plan})


def network(**plan):
    workload = {"dataset": "digits", "model": "fc_8", "optimizer": "nesterov_momentum", "schedule": STAIRS}
    space = {"learning_rate": {"min": 1e-2, "max": 10.0, "scale": "log"}, "momentum": {"values": [0.5]}}
    return make_sweep(workload, space, **{"goal": "val/classification_error < 0.3", **plan})


@pytest.fixture(scope="module")
def trainers():
    return {"nqm": QuadraticTrainer(), "digits": TorchTrainer(digits.load(), device="cpu")}


@pytest.fixture
def stored(fill, trainers):
    """Return a function that fills a study here and returns all of it but times and places."""

    def run(sweep, path, **options):
        trainer = trainers[sweep.workload.dataset.name]
        fill(sweep.study(4), path, trainer, 1, **options)
        return outcome_of(path)

    return run


def outcome_of(path):
    result = StudyFolder(path).result()
    rows, confirmation = result.measurements, result.confirmation
    trials = [trial.without_times() for trial in result.trials]
    columns = [column.tolist() for column in (rows.trial_id, rows.step, rows.examples, *rows.metrics.values())]
    return result.end_step, trials, columns, confirmation and confirmation.without_times()


def examples_of(study, trial, steps):
    """Return the examples before each step, by asking the schedule for one update after the other."""
    schedule, values = staircase("batch_size"), {name: np.array([value]) for name, value in trial.items()}
    values["batch_size"], clock, seen = np.array([float(study.batch_size)]), Clock(), [0]
    while len(seen) <= max(steps):
        clocks = Clocks(np.array([clock.step]), np.array([clock.examples]))
        size = schedule(values, clocks, Horizon(study.max_steps, study.batch_size))["batch_size"].item()
        clock = clock.after(round(size))
        seen.append(clock.examples)
    return [seen[step] for step in steps]


@pytest.mark.parametrize("make", [nqm, network])
def test_every_row_tells_the_examples_of_its_own_trial(make, stored, tmp_path):
    sweep = make(trials=2)
    stored(sweep, tmp_path / "4")
    result = StudyFolder(tmp_path / "4").result()

    for trial in result.trials:
        curve = result.measurements.curve(trial.trial_id)
        assert curve.examples.tolist() == examples_of(sweep.study(4), trial.metaparameters, curve.steps.tolist())
    assert not result.has_one_batch_size


@pytest.mark.parametrize("make", [nqm, network])
def test_a_race_that_is_stopped_and_shuffled_stores_the_same(make, stored, tmp_path):
    sweep = make(confirm={"seeds": 1, "points": 1}, trials=3) if make is network else make()
    whole = stored(sweep, tmp_path / "4")

    again = stored(sweep, tmp_path / "again" / "4", chance=random.Random(1), restarts=0.2)

    assert again == whole
    assert (whole[-1] is not None) == (make is network)


def test_a_pack_that_is_stopped_in_the_middle_goes_on_to_the_bit(trainers, stored, tmp_path):
    """Stopped between any two chunks, also where the batch size changes, from its checkpoint on disk."""
    sweep = network(protocol="full", trials=2, max_steps=150)
    study, whole = sweep.study(4), stored(sweep, tmp_path / "4")
    run, num_stops = StudyRun(study, StudyFolder(tmp_path / "stopped" / "4")), 0
    run.choose_pack_size(1)
    while named_task := run.take_task():
        name, task = named_task
        result = None
        while result is None:
            calls = iter(range(1000))
            stop = lambda calls=calls: next(calls) == 2  # noqa: E731
            shelf = run.shelf(name)
            hooks = Hooks(lambda: study.max_steps, lambda end: None, lambda standing: None, stop, shelf.save)
            try:
                result = train_pack(trainers["digits"], task, hooks)
            except Interrupted:
                num_stops += 1
                task = replace(task, resume=shelf.read([point.trial_id for point in task.points]))
        run.keep_part(name, result)

    assert outcome_of(tmp_path / "stopped" / "4") == whole
    assert num_stops > 8


LIMITED = {"max_examples": 3000}


@pytest.mark.parametrize(
    ("make", "keep_states", "small", "large"),
    [
        pytest.param(nqm, False, {"trials": 2}, {"trials": 4}, id="trials"),
        pytest.param(nqm, False, {"max_steps": 90}, {"max_steps": 300}, id="steps"),
        pytest.param(nqm, True, {"trials": 2, **LIMITED}, {"trials": 4, **LIMITED}, id="trials within examples"),
        pytest.param(
            nqm, False, {"max_steps": 90, **LIMITED}, {"max_steps": 300, **LIMITED}, id="steps within examples"
        ),
        pytest.param(
            *(nqm, False, {"trials": 2, "max_steps": 35, **LIMITED}, {"trials": 4, "max_steps": 35, **LIMITED}),
            id="trials to an end of steps that is not on the grid",
        ),
        pytest.param(network, True, {"max_steps": 90}, {"max_steps": 150}, id="steps of a network"),
        pytest.param(
            *(network, True, {"trials": 2, **LIMITED}, {"trials": 3, **LIMITED}), id="a network", marks=pytest.mark.slow
        ),
        pytest.param(
            *(network, False, {"max_steps": 90, **LIMITED}, {"max_steps": 300, **LIMITED}),
            id="a network, without states",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_study_that_has_grown_is_the_one_that_was_begun_so(make, keep_states, small, large, stored, tmp_path):
    at_once = stored(make(**large), tmp_path / "4")

    stored(make(**small), tmp_path / "grown" / "4", keep_states=keep_states)
    grown = stored(make(**large), tmp_path / "grown" / "4", keep_states=keep_states)

    assert grown == at_once


@pytest.mark.parametrize("make", [nqm, network])
def test_a_limit_of_examples_ends_each_trial_by_its_own_clock(make, stored, tmp_path):
    sweep = make(max_examples=3000, protocol="full")
    stored(sweep, tmp_path / "4")
    result = StudyFolder(tmp_path / "4").result()
    ends = {trial.trial_id: trial.last_step for trial in result.first_complete()}

    assert len(ends) == 4 and len(set(ends.values())) > 1
    for trial in result.first_complete():
        last = ends[trial.trial_id]
        now, after = examples_of(sweep.study(4), trial.metaparameters, [last, last + 1])
        assert now <= 3000 < after or last == 300
        assert int(result.measurements.curve(trial.trial_id).examples[-1]) == now
    assert result.end_examples > 3000 - 64


def test_a_limit_of_examples_does_not_grow(tmp_path):
    Lab.create(tmp_path / "lab").admit(nqm(max_examples=3000))

    with pytest.raises(SpecError, match="at batch size 4: max_examples: 3000 -> 4000"):
        run_sweep(nqm(max_examples=4000), tmp_path / "lab", num_workers=1)


def test_a_lab_of_such_studies_is_sound_and_answers_and_comes_back(tmp_path):
    """Two processes, confirmed, verified, asked in SQL, exported and imported again."""
    run_sweep(nqm(max_examples=3000, batch_sizes=[4, 16]), tmp_path / "lab", num_workers=2)
    verification = verify_lab(tmp_path / "lab", deep=True)
    ask = "select batch_size, trial_id, step, examples from measurements order by all"
    rows = connect(tmp_path / "lab").execute(ask).fetchall()
    list(export_lab(Lab.open(tmp_path / "lab"), tmp_path / "out"))
    import_archive(tmp_path / "out", tmp_path / "back", processes=1)

    assert verification.findings == []
    expected = {}
    for size in (4, 16):
        curve = Lab.open(tmp_path / "lab").study_folder("grows", size).result().measurements
        for key in zip(curve.trial_id.tolist(), curve.step.tolist(), curve.examples.tolist(), strict=True):
            expected[(size, *key)] = True
    assert list(expected) == rows
    assert connect(tmp_path / "back").execute(ask).fetchall() == rows


def test_packs_of_several_trials_are_refused():
    sweep = nqm()
    sweep = sweep.model_copy(update={"engine": sweep.engine.model_copy(update={"pack_size": 2})})

    with pytest.raises(SpecError, match="engine.pack_size = 2: trials whose batch size is scheduled train one by one"):
        QuadraticTrainer().check(sweep.study(4))
