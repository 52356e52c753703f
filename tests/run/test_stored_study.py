"""What is stored is compared with the spec before anything goes on from it."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from batchlab.core.growth import fixed_digest
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.errors import DamagedError, LabError, UnreadableError
from batchlab.run.merge.labs import merge_labs
from batchlab.run.pack import Hooks, train_pack
from batchlab.run.resume import UnusableCheckpointError
from batchlab.run.run_sweep import run_sweep
from batchlab.run.study_run import StudyRun
from batchlab.store.checkpoint import read_checkpoint
from batchlab.store.lab import Lab
from batchlab.store.seal import read_sealed, write_sealed
from batchlab.verify.lab import verify_lab
from batchlab.verify.repair import repair_lab

FINISHED, RUNNING = "finished", "running"


@pytest.fixture
def make_lab(make_scripted, scripted, tmp_path, fill):
    """Return a function that makes a lab with one study, finished or with two of its four trials trained."""

    def make(name="lab", state=FINISHED, changes=None):
        sweep, lab = make_scripted(changes), Lab.create(tmp_path / name)
        lab.admit(sweep)
        only = {} if state == FINISHED else {"only": range(2)}
        fill(
            sweep.study(8),
            lab.study_folder("scripted", 8).folder,
            scripted({0: 20, 1: 60}),
            2,
            **options(sweep),
            **only,
        )
        return lab

    return make


def options(sweep):
    return {"sweep": fixed_digest(sweep)}


def reseal(path, change):
    """Change study.json as whoever knows how to seal it would."""
    data = read_sealed(path)
    change(data)
    write_sealed(path, data)


def digit(data):
    data["points"][3]["learning_rate"] += 1e-12


CHANGES = {
    "a point's changed digit": digit,
    "a point removed": lambda data: data["points"].pop(),
    "two points exchanged": lambda data: data["points"].reverse(),
    "a changed goal": lambda data: data["study"].update(goal="val/loss < 0.4"),
    "a changed range": lambda data: data["study"]["search_space"]["learning_rate"].update(max=1.5),
    "a changed seed": lambda data: data["study"].update(seed=1),
    "a changed batch size": lambda data: data["study"].update(batch_size=16),
    "more than was asked for": lambda data: data["study"].update(trials=9),
    "a pack size of 0": lambda data: data.update(pack_size=0),
    "a pack size of 10**9": lambda data: data.update(pack_size=10**9),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("state", [FINISHED, RUNNING])
@pytest.mark.parametrize("how", ["resume", "grow", "confirm", "merge"])
def test_a_changed_study_is_not_gone_on_from(make_lab, make_scripted, tmp_path, change, state, how):
    lab = make_lab(state=state)
    path = lab.study_folder("scripted", 8).folder / "study.json"
    reseal(path, change)
    before = path.read_bytes()
    grown = {"grow": {"sweep.trials": 6}, "confirm": {"sweep.confirm": {"seeds": 2, "points": 1}}}.get(how)

    with pytest.raises(DamagedError) as caught:
        if how == "merge":
            merge_labs([lab.folder], tmp_path / "both")
        else:
            StudyRun(make_scripted(grown).study(8), lab.study_folder("scripted", 8))

    assert str(path) in str(caught.value)
    assert "batchlab verify" in str(caught.value)
    assert caught.value.exit_code == 1
    assert path.read_bytes() == before
    assert not (tmp_path / "both" / "sweeps" / "scripted").exists()


def test_an_outcome_that_the_curves_do_not_bear_out_is_not_confirmed(make_lab, make_scripted):
    folder = make_lab().study_folder("scripted", 8)
    reseal(folder.folder / "study.json", lambda data: data.update(best_steps=30))

    with pytest.raises(DamagedError, match="the goal was met after 20 steps, not as it says"):
        StudyRun(make_scripted({"sweep.confirm": {"seeds": 2, "points": 1}}).study(8), folder)


# Packs


def test_a_pack_that_was_copied_under_another_name_is_named(make_lab, make_scripted):
    folder = make_lab(state=RUNNING).study_folder("scripted", 8)
    shutil.copyfile(folder.part_path("trials-0-1"), folder.part_path("trials-2-3"))

    with pytest.raises(DamagedError, match="trials-2-3.parquet is damaged: it is of other trials than its name says"):
        StudyRun(make_scripted().study(8), folder)


@pytest.mark.parametrize("name", ["trials-0-1.2", "before-0"])
def test_a_pack_that_is_there_twice_is_named(make_lab, make_scripted, name):
    """Its steps and seconds would count twice."""
    folder = make_lab(state=RUNNING).study_folder("scripted", 8)
    shutil.copyfile(folder.part_path("trials-0-1"), folder.part_path(name))

    with pytest.raises(DamagedError, match="once more"):
        StudyRun(make_scripted().study(8), folder)


def test_a_pack_of_another_study_is_named(make_lab, make_scripted):
    here, there = (make_lab(name, RUNNING, changes) for name, changes in (("a", None), ("b", {"seed": 1})))
    pack = here.study_folder("scripted", 8).part_path("trials-0-1")
    shutil.copyfile(there.study_folder("scripted", 8).part_path("trials-0-1"), pack)

    with pytest.raises(DamagedError, match="trials-0-1.parquet is damaged: it is of another study"):
        StudyRun(make_scripted().study(8), here.study_folder("scripted", 8))


@pytest.mark.parametrize("name", ["trials-2-3", "trials-0-1.2"])
def test_what_a_run_refuses_verify_finds_and_repair_sets_aside(make_lab, make_scripted, name):
    lab = make_lab(state=RUNNING)
    folder = lab.study_folder("scripted", 8)
    shutil.copyfile(folder.part_path("trials-0-1"), folder.part_path(name))

    assert len(verify_lab(lab.folder).findings) == 1
    _, after = repair_lab(lab.folder)

    assert after.is_sound
    assert sorted(StudyRun(make_scripted().study(8), folder).outcomes) == [0, 1]


# Checkpoints


@pytest.fixture
def paused(make_nqm, tmp_path):
    """Return the first pack of a study of the quadratic model, paused in the middle of its training."""
    sweep = make_nqm({"sweep.batch_sizes": [16], "sweep.protocol": "full"})
    lab = Lab.create(tmp_path / "lab")
    lab.admit(sweep)
    run = StudyRun(sweep.study(16), lab.study_folder("nqm", 16), **options(sweep))
    run.choose_pack_size(12)
    name, task = run.take_task()
    task, shelf = replace(task, pause_step=100), run.shelf(name)
    assert train(task, shelf) is None
    return sweep, task, shelf


def train(task, shelf):
    """Train a pack from its last checkpoint on."""
    hooks = Hooks(lambda: task.end_step, lambda _: None, lambda _: None, lambda: False, shelf.save)
    resume = shelf.read([point.trial_id for point in task.points])
    return train_pack(QuadraticTrainer(), replace(task, resume=resume), hooks)


def rewrite(shelf, **changes):
    """Change arrays of a checkpoint, and give it a digest that fits."""
    arrays = {**read_checkpoint(shelf.path), **{name.replace("_0_", "."): each for name, each in changes.items()}}
    shelf.save({name: array for name, array in arrays.items() if array is not None})


UNUSABLE = {
    "moments of another shape": {"program_0_moments": np.zeros((12, 3, 1, 1))},
    "moments that would be spread": {"program_0_moments": np.zeros((1, 10, 1, 1))},
    "moments of another type": {"program_0_moments": np.zeros((12, 10, 1, 1), np.float32)},
    "no moments": {"program_0_moments": None},
    "an array too many": {"program_0_velocity": np.zeros(3)},
    "no step": {"program_0_step": None},
    "a step before the last row": {"program_0_step": np.array(50)},
    "a step far ahead": {"program_0_step": np.array(350)},
    "a step past the budget": {"program_0_step": np.array(10**9)},
    "a step as a fraction": {"program_0_step": np.array(100.0)},
    "a list of steps": {"program_0_step": np.array([100, 100])},
    "trials out of order": {"program_0_trial_ids": np.arange(12)[::-1].copy()},
    "a trial lost": {"program_0_trial_ids": np.arange(11), "program_0_moments": np.zeros((11, 10, 1, 1))},
    "rows of another type": {"rows_0_val/risk": np.zeros(12 * 101, np.float32)},
    "a divergence in the future": {"program_0_diverged": np.array([[3, 500]])},
    "divergences of another shape": {"program_0_diverged": np.zeros(4, np.int64)},
}


@pytest.mark.parametrize("changes", UNUSABLE.values(), ids=UNUSABLE)
def test_a_checkpoint_that_no_program_can_have_left_is_told_from_a_failing_trainer(paused, changes):
    _, task, shelf = paused
    rewrite(shelf, **changes)

    with pytest.raises(UnusableCheckpointError):
        train(task, shelf)


def test_a_trainer_that_fails_without_a_checkpoint_too_is_told_as_that(paused):
    _, task, shelf = paused
    resume = shelf.read([point.trial_id for point in task.points])

    class Broken:
        def program(self, study, points, state=None):
            raise MemoryError("too large")

    with pytest.raises(MemoryError):
        hooks = Hooks(lambda: 9, lambda _: None, lambda _: None, lambda: False, shelf.save)
        train_pack(Broken(), replace(task, resume=resume), hooks)


def test_an_unusable_checkpoint_is_set_aside_and_its_pack_trains_anew(paused, tmp_path):
    sweep, _, shelf = paused
    run_sweep(sweep, tmp_path / "straight", num_workers=1)
    rewrite(shelf, program_0_moments=np.zeros((1, 10, 1, 1)))

    run_sweep(sweep, tmp_path / "lab", num_workers=1)

    kept, why = (
        sorted((tmp_path / "lab" / "set-aside").rglob("*.safetensors")),
        tmp_path.glob("lab/set-aside/*/why.json"),
    )
    assert [path.name for path in kept] == ["trials-0-11.safetensors"]
    assert "moments is float64 (1, 10, 1, 1)" in json.loads(next(why).read_text())[0]["problem"]
    results = [Lab.open(tmp_path / name).study_folder("nqm", 16).result() for name in ("lab", "straight")]
    assert [each.measurements.metrics["val/risk"].tobytes() for each in results] == [
        results[1].measurements.metrics["val/risk"].tobytes()
    ] * 2


# Permissions


def test_a_study_that_may_not_be_read_is_not_called_damaged_and_not_set_aside(make_lab, make_scripted, monkeypatch):
    lab = make_lab()
    folder = lab.study_folder("scripted", 8)
    original = os.open

    def refuse(path, *arguments, **options):
        if str(path).endswith("trials.json"):
            raise PermissionError(13, "Permission denied", str(path))
        return original(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    there = sorted(lab.folder.rglob("*"))

    problems = lab.results(make_scripted()).problems
    findings = verify_lab(lab.folder).findings
    with pytest.raises(UnreadableError, match="Permission denied. Nothing is set aside"):
        repair_lab(lab.folder)

    assert [str(each) for each in problems] == [f"Could not read {folder.folder / 'trials.json'}: Permission denied."]
    assert [finding.is_unreadable for finding in findings] == [True]
    assert sorted(path for path in lab.folder.rglob("*") if path.name != "lock") == [
        p for p in there if p.name != "lock"
    ]


def test_a_folder_of_packs_that_may_not_be_read_stops_the_run(make_lab, make_scripted, monkeypatch):
    """Its packs would be trained once more without a word."""
    folder = make_lab(state=RUNNING).study_folder("scripted", 8)
    original = os.listdir

    def refuse(path="."):
        if str(path).endswith("parts"):
            raise PermissionError(13, "Permission denied", str(path))
        return original(path)

    monkeypatch.setattr(os, "listdir", refuse)

    with pytest.raises(LabError, match="parts: Permission denied"):
        StudyRun(make_scripted().study(8), folder)
