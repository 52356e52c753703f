"""Labs that come from somebody else, and labs with files of the user's own in them."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress

import pytest

from batchlab.core.growth import fixed_digest
from batchlab.errors import InputError, LabError, StorageError
from batchlab.run.merge.labs import merge_labs
from batchlab.store.lab import Lab
from batchlab.store.status import sweep_statuses
from batchlab.verify.accept import accept_edit
from batchlab.verify.lab import verify_lab
from batchlab.verify.repair import repair_lab

PLACES = {
    "finished": [
        "sweeps",
        "sweeps/scripted",
        "sweeps/scripted/8",
        "sweeps/scripted/growing",
        "sweeps/scripted/replaced",
    ],
    "running": ["sweeps/scripted/8/parts", "sweeps/scripted/8/checkpoints", "sweeps/scripted/8"],
}


@pytest.fixture
def make_lab(make_scripted, scripted, tmp_path, fill):
    """Return a function that makes a lab with one study, finished or with two of its four trials trained."""

    def make(name="lab", state="finished"):
        sweep, lab = make_scripted(), Lab.create(tmp_path / name)
        lab.admit(sweep)
        only = {} if state == "finished" else {"only": range(2)}
        path = lab.folder / "sweeps" / "scripted" / "8"
        fill(sweep.study(8), path, scripted({0: 20, 1: 60}), 2, sweep=fixed_digest(sweep), **only)
        return lab

    return make


def contents(folder):
    return {path.relative_to(folder): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def go_on(lab, sweep, scripted, fill):
    """Do what a run does, in this process: go on with the one study, grown to more trials."""
    with lab.locked():
        sweep = lab.admit(sweep)
        folder = lab.study_folder("scripted", 8)
        fill(sweep.study(8), folder.folder, scripted({0: 20, 1: 60}), 2, sweep=fixed_digest(sweep))


@pytest.mark.parametrize(("state", "place"), [(state, place) for state in PLACES for place in PLACES[state]])
def test_nothing_is_written_or_removed_behind_a_link(make_lab, make_scripted, scripted, fill, tmp_path, state, place):
    lab, elsewhere = make_lab(state=state), tmp_path / "elsewhere"
    if (lab.folder / place).exists():
        (lab.folder / place).rename(elsewhere)
    else:
        elsewhere.mkdir()
    (elsewhere / "notes.txt").write_text("mine")
    (lab.folder / place).symlink_to(elsewhere)
    before, other = contents(elsewhere), make_lab("other", "running")

    with pytest.raises(LabError, match=f"{lab.folder / place} is a link, which no lab holds"):
        go_on(lab, make_scripted({"sweep.trials": 6}), scripted, fill)
    with suppress(LabError):  # it may have nothing to do there
        merge_labs([other.folder], lab.folder)
    if place != "sweeps":
        verification = verify_lab(lab.folder)
        assert any(str(lab.folder / place) in finding.problem for finding in verification.findings)

    assert contents(elsewhere) == before


@pytest.mark.parametrize(("state", "place"), [(state, place) for state in PLACES for place in PLACES[state][1:]])
def test_repair_sets_a_link_aside_and_leaves_what_it_points_to(make_lab, tmp_path, state, place):
    lab, elsewhere = make_lab(state=state), tmp_path / "elsewhere"
    shutil.rmtree(lab.folder / place, ignore_errors=True)
    elsewhere.mkdir()
    (elsewhere / "notes.txt").write_text("mine")
    (lab.folder / place).symlink_to(elsewhere)

    repair_lab(lab.folder)

    assert not (lab.folder / place).is_symlink()
    assert (next((lab.folder / "set-aside").iterdir()) / place).is_symlink()
    assert contents(elsewhere) == {(elsewhere / "notes.txt").relative_to(elsewhere): b"mine"}


@pytest.mark.parametrize("name", ["study.json", "trials.json", "measurements.parquet"])
def test_a_file_that_is_a_link_is_not_read(make_lab, make_scripted, tmp_path, name):
    lab = make_lab()
    path = lab.study_folder("scripted", 8).folder / name
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")

    problems = lab.results(make_scripted()).problems

    assert len(problems) == 1
    assert f"{path}: it is a link, which no lab holds" in str(problems[0])


def test_a_lab_behind_a_link_is_the_users_word(make_lab, make_scripted, scripted, fill, tmp_path):
    (tmp_path / "link").symlink_to(make_lab("lab", "running").folder)

    go_on(Lab.open(tmp_path / "link"), make_scripted(), scripted, fill)

    assert Lab.open(tmp_path / "lab").study_folder("scripted", 8).record().state == "finished"
    assert (tmp_path / "link").is_symlink()


NAMES = ["08", "+8", "٨", "8²", "8.0", "-8", "0", " 8", "9" * 200]


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_only_looks_like_a_batch_size_is_none(make_lab, make_scripted, name):
    lab = make_lab()
    shutil.copytree(lab.folder / "sweeps" / "scripted" / "8", lab.folder / "sweeps" / "scripted" / name)

    assert [status.finished for status in sweep_statuses(lab)] == [1]
    verification = verify_lab(lab.folder)
    assert verification.is_sound
    assert lab.folder / "sweeps" / "scripted" / name in verification.foreign
    with pytest.raises(InputError, match="is no folder of a study"):
        accept_edit(lab, lab.folder / "sweeps" / "scripted" / name / "study.json")


@pytest.mark.parametrize("name", NAMES)
def test_a_stray_folder_of_studies_makes_no_sweep(make_lab, name):
    lab = make_lab()
    shutil.copytree(lab.folder / "sweeps" / "scripted" / "8", lab.folder / "sweeps" / "mine" / name)

    assert lab.sweep_names() == ["scripted"]


# Files of the user's own

OWN = [
    "notes.txt",
    "mine.tmp",
    "parts/notes.txt",
    "parts/results.parquet",
    "checkpoints/best.npz",
    "parts/backup/a.txt",
]


@pytest.mark.parametrize("place", OWN)
def test_a_users_own_file_survives_the_end_of_the_study(make_lab, make_scripted, scripted, fill, place):
    lab = make_lab(state="running")
    path = lab.study_folder("scripted", 8).folder / place
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")

    go_on(lab, make_scripted(), scripted, fill)

    assert path.read_text() == "mine"
    assert Lab.open(lab.folder).study_folder("scripted", 8).record().state == "finished"
    assert not list(path.parent.glob("trials-*"))


@pytest.mark.parametrize("place", [*OWN, "growing/notes.txt", "confirming/notes.txt", "states/notes.txt"])
def test_a_users_own_file_survives_growth(make_lab, make_scripted, scripted, fill, place):
    lab = make_lab()
    path = lab.study_folder("scripted", 8).folder / place
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("mine")

    for trials in (6, 8):
        go_on(lab, make_scripted({"sweep.trials": trials}), scripted, fill)

    assert path.read_text() == "mine"
    assert len(Lab.open(lab.folder).study_folder("scripted", 8).result().trials) == 8
    assert verify_lab(lab.folder).is_sound


def test_a_users_own_file_survives_a_merge(make_lab):
    lab, other = make_lab("lab", "running"), make_lab("other")
    path = lab.study_folder("scripted", 8).folder / "notes.txt"
    path.write_text("mine")

    merge_labs([other.folder], lab.folder)

    assert path.read_text() == "mine"
    assert lab.study_folder("scripted", 8).record().state == "finished"


def test_a_users_own_folder_by_the_name_of_a_sweep_is_kept(make_lab, tmp_path):
    other, lab = make_lab("other"), Lab.create(tmp_path / "lab")
    (lab.folder / "sweeps" / "scripted").mkdir()
    (lab.folder / "sweeps" / "scripted" / "notes.txt").write_text("mine")

    merge_labs([other.folder], lab.folder)

    assert (lab.folder / "sweeps" / "scripted" / "notes.txt").read_text() == "mine"
    assert lab.study_folder("scripted", 8).record().state == "finished"


def test_a_grown_study_that_finds_its_place_taken_says_so(make_lab, make_scripted):
    """Something of the user's in `replaced/8`, by the name of one of ours, is not removed: one line tells of it."""
    lab = make_lab()
    folder = lab.study_folder("scripted", 8)
    place = folder.folder.parent / "replaced" / "8"
    place.parent.mkdir()
    place.write_text("mine")

    with pytest.raises(StorageError, match="replaced/8"):
        folder.exchange()

    assert place.read_text() == "mine"
    assert folder.record().state == "finished"


def test_a_pipe_in_the_place_of_a_file_hangs_nobody(make_lab, make_scripted):
    lab = make_lab()
    for name in ("study.json", "trials.json", "measurements.parquet"):
        path = lab.study_folder("scripted", 8).folder / name
        path.rename(path.with_name("kept"))
        os.mkfifo(path)

        assert "it is no regular file" in str(lab.results(make_scripted()).problems[0])
        assert any(status.problems for status in sweep_statuses(lab)) or name == "trials.json"

        path.unlink()
        path.with_name("kept").rename(path)
