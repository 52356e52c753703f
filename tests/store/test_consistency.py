"""Files of a study that were exchanged or edited: each is named, none answers."""

from __future__ import annotations

import json

import pytest

from batchlab.core.confirmation import Confirmation, Replicate
from batchlab.core.goal import Goal
from batchlab.errors import DamagedError, LabError
from batchlab.store.lab import Lab
from batchlab.store.seal import seal_of, write_sealed
from batchlab.store.study_folder import StudyFolder


@pytest.fixture
def folder(tmp_path, finish):
    folder = StudyFolder(tmp_path / "8")
    finish(folder)
    return folder


def edit(folder, name, change):
    """Change a file and give it a new seal, as somebody would who knows how: what it says is all that is left."""
    path = folder.folder / name
    data = json.loads(path.read_text())
    data.pop("digest", None) if isinstance(data, dict) else None
    change(data)
    if name == "study.json":
        write_sealed(path, data)
    else:
        path.write_text(json.dumps(data))
        reseal(folder, name)


def reseal(folder, name):
    folder.save_record(folder.record().with_files({name: seal_of((folder.folder / name).read_bytes())}))


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("study.json", lambda data: data.pop("end_step"), "tells no outcome"),
        ("study.json", lambda data: data.update(num_measurements=6), "5 rows, not 6"),
        ("study.json", lambda data: data["counts"].update(COMPLETE=2), "other numbers of trials"),
        ("trials.json", lambda data: data.reverse(), "not those of the points"),
        ("trials.json", lambda data: data[0].update(trial_id=10**18), "not those of the points"),
        ("trials.json", lambda data: data[0].update(trial_id=10**30), "less than or equal"),
        ("trials.json", lambda data: data[1]["metaparameters"].update(learning_rate=0.5), "other metaparameters"),
        ("trials.json", lambda data: data[0].update(last_step=10), "end at other steps"),
    ],
)
def test_a_file_that_does_not_agree_with_the_others_is_named(folder, name, change, problem):
    edit(folder, name, change)

    with pytest.raises(LabError, match=problem):
        folder.result()


def test_measurements_of_another_batch_size_are_noticed(tmp_path, folder, finish):
    finish(StudyFolder(tmp_path / "32"), 32)
    (tmp_path / "32" / "measurements.parquet").replace(tmp_path / "8" / "measurements.parquet")

    with pytest.raises(DamagedError, match="measurements.parquet was changed after it was written"):
        folder.result()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: data.update(seeds=10**30), "not those of its trials and seeds"),
        (lambda data: data.update(seeds=0), "not those of its trials and seeds"),
        (lambda data: data.update(trial_ids=[7]), "trials that there are not"),
        (lambda data: data["replicates"][0].update(replicate=0), "not those of its trials and seeds"),
        (lambda data: data["replicates"][0].update(goal_step=-1), "ends neither at the goal"),
        (lambda data: data["replicates"][0].pop("goal_step"), "ends neither at the goal"),
        (lambda data: data["replicates"][0].update(goal_step=30, last_step=30), "ends neither at the goal"),
    ],
)
def test_a_confirmation_that_does_not_belong_to_the_study_is_named(folder, measurements, change, problem):
    replicate = Replicate(trial_id=0, replicate=1, goal_step=10, last_step=10)
    goal = Goal.read("val/classification_error < 0.5")
    confirmation = Confirmation(goal=goal, seeds=1, trial_ids=(0,), end_step=20, replicates=(replicate,))
    folder.finish_confirmation(confirmation, measurements)
    assert folder.result().confirmation == confirmation
    edit(folder, "confirmed.json", change)

    with pytest.raises(LabError, match=problem):
        folder.result()


def test_a_study_at_the_place_of_another_batch_size_is_a_problem(tmp_path, make_sweep, finish):
    lab = Lab.create(tmp_path / "lab")
    lab.admit(make_sweep())
    finish(lab.study_folder("small", 8), 32)

    results = lab.results(make_sweep())

    assert results.results == []
    assert "at batch size 32" in str(results.problems[0])


def test_a_study_that_is_exchanged_while_it_is_read_is_read_again(tmp_path, make_sweep, finish, monkeypatch):
    """Nothing of the old study is taken together with something of the new one."""
    lab = Lab.create(tmp_path / "lab")
    lab.admit(make_sweep())
    home = lab.study_folder("small", 8)
    finish(home)
    finish(home.growing)
    original, reads = StudyFolder.result, []

    def result(self, metrics=None, record=None):
        if not reads:
            home.exchange()
        reads.append(self.version)
        return original(self, metrics, record)

    monkeypatch.setattr(StudyFolder, "result", result)

    assert len(lab.results(make_sweep()).results) == 1
    assert len(reads) == 2


@pytest.mark.parametrize("number", [0, -1, True])
def test_a_format_that_never_was_is_refused(tmp_path, number):
    lab = Lab.create(tmp_path / "lab")
    (lab.folder / "lab.json").write_text(json.dumps({"format": number}))

    with pytest.raises(LabError, match="does not name the lab's format"):
        Lab.open(lab.folder)


def test_a_sweep_in_a_folder_of_another_name_is_refused(tmp_path, make_sweep):
    lab = Lab.create(tmp_path / "lab")
    lab.admit(make_sweep())
    (lab.folder / "sweeps" / "small").rename(lab.folder / "sweeps" / "backup")

    with pytest.raises(LabError, match="holds sweep small"):
        lab.sweep("backup")
