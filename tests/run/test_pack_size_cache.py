"""The calibration file in the user's cache folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from batchlab.run import pack_size_cache
from batchlab.run.pack_size_cache import Calibration, calibration_path, recall, remember
from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab

MEASURED = Calibration(3, 2.5e-5)


@pytest.fixture
def study(make_digits):
    return make_digits().study(16)


def test_the_file_is_in_the_cache_folder(tmp_path, monkeypatch):
    assert calibration_path() == tmp_path / "cache" / "batchlab" / "calibration.json"

    monkeypatch.delenv("XDG_CACHE_HOME")
    assert calibration_path() == Path.home() / ".cache" / "batchlab" / "calibration.json"


def test_what_is_remembered_is_recalled(study):
    assert recall(study) is None

    remember(study, MEASURED)

    assert recall(study) == MEASURED


def test_a_second_measurement_takes_the_place_of_the_first_and_leaves_others(study, make_digits):
    other = make_digits().study(64)
    remember(study, MEASURED)
    remember(other, Calibration(1, 1e-3))
    remember(study, Calibration(2, 1e-5))

    assert recall(study) == Calibration(2, 1e-5)
    assert recall(other) == Calibration(1, 1e-3)


@pytest.mark.parametrize(
    "changes",
    [
        {"workload.model": "fc_256"},
        {"workload.dataset": {"name": "digits", "train_examples": 500}},
        {"sweep.trials": 7},
        {"engine.precision": "bfloat16"},
    ],
)
def test_another_kind_of_study_is_measured_for_itself(study, make_digits, changes):
    remember(study, MEASURED)

    assert recall(make_digits(changes).study(16)) is None
    assert recall(make_digits().study(64)) is None


def test_the_goal_and_the_budget_change_nothing(study, make_digits):
    remember(study, MEASURED)

    changed = make_digits({"sweep.goal": "val/classification_error < 0.01", "sweep.max_steps": 9, "name": "other"})
    assert recall(changed.study(16)) == MEASURED


@pytest.mark.parametrize("content", ["", "{", "[]", "3", '{"a": "b"}'])
def test_a_file_that_cannot_be_read_is_begun_anew(study, content):
    calibration_path().parent.mkdir(parents=True)
    calibration_path().write_text(content)

    assert recall(study) is None
    remember(study, MEASURED)

    assert recall(study) == MEASURED


def test_an_entry_that_makes_no_sense_is_none(study):
    remember(study, MEASURED)
    calibration_path().write_text(calibration_path().read_text().replace("pack_size", "size"))

    assert recall(study) is None


def test_without_a_cache_folder_nothing_fails(study, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")

    remember(study, MEASURED)

    assert recall(study) is None


BAD = [
    {"pack_size": 0, "seconds_per_trial_step": 1e-5},
    {"pack_size": -1, "seconds_per_trial_step": 1e-5},
    {"pack_size": 10**9, "seconds_per_trial_step": 1e-5},
    {"pack_size": 7, "seconds_per_trial_step": 1e-5},
    {"pack_size": True, "seconds_per_trial_step": 1e-5},
    {"pack_size": 2.0, "seconds_per_trial_step": 1e-5},
    {"pack_size": "2", "seconds_per_trial_step": 1e-5},
    {"pack_size": [2], "seconds_per_trial_step": 1e-5},
    {"pack_size": 2, "seconds_per_trial_step": float("nan")},
    {"pack_size": 2, "seconds_per_trial_step": float("inf")},
    {"pack_size": 2, "seconds_per_trial_step": 0},
    {"pack_size": 2, "seconds_per_trial_step": -1.0},
    {"pack_size": 2, "seconds_per_trial_step": "1e-5"},
    {"pack_size": 2, "seconds_per_trial_step": False},
    {"pack_size": 2, "seconds_per_trial_step": None},
    {"pack_size": 2, "seconds_per_trial_step": 1e-5, "more": 1},
    {"pack_size": 2},
    [2, 1e-5],
    None,
]


@pytest.mark.parametrize("entry", BAD, ids=str)
def test_an_entry_out_of_bounds_is_measured_again(study, make_digits, entry):
    remember(study, MEASURED)
    entries = json.loads(calibration_path().read_text())
    calibration_path().write_text(json.dumps(dict.fromkeys(entries, entry)))

    assert recall(study) is None
    remember(make_digits().study(64), Calibration(2, 1e-5))

    assert recall(study) is None
    assert recall(make_digits().study(64)) == Calibration(2, 1e-5)


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "link", "dangling link", "too large", "digits", "nested"])
def test_a_file_that_is_none_neither_stops_nor_hangs_anyone(study, tmp_path, kind):
    path = calibration_path()
    remember(study, MEASURED)
    path.rename(tmp_path / "elsewhere")
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "too large":
        path.touch()
        os.truncate(path, 1 << 40)
    elif kind in ("digits", "nested"):
        path.write_text(f'{{"a": {"9" * 5000 if kind == "digits" else "[" * 100_000}')
    else:
        path.symlink_to({"device": "/dev/zero", "link": tmp_path / "elsewhere"}.get(kind, "nowhere"))

    assert recall(study) is None
    remember(study, MEASURED)

    assert recall(study) == (None if kind in ("folder", "pipe") else MEASURED), "it is written anew where it can be"
    assert json.loads((tmp_path / "elsewhere").read_text()), "nothing was written through a link"


def test_the_file_of_another_user_is_not_believed(study, monkeypatch):
    remember(study, MEASURED)
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(calibration_path()).st_uid + 1)

    assert recall(study) is None


def test_a_file_that_may_not_be_read_is_measured_again(study, monkeypatch):
    remember(study, MEASURED)

    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)

    assert recall(study) is None
    remember(study, MEASURED)


def test_without_a_home_there_is_no_file_and_no_error(study, monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nowhere)

    assert recall(study) is None
    remember(study, MEASURED)


@pytest.mark.slow
def test_a_bad_entry_never_reaches_the_record_of_a_study(make_digits, tmp_path):
    sweep = make_digits({"engine.pack_size": "auto", "sweep.batch_sizes": [64], "sweep.max_steps": 2})
    key = pack_size_cache._key(sweep.study(64))
    calibration_path().parent.mkdir(parents=True)
    calibration_path().write_text(json.dumps({key: {"pack_size": 0, "seconds_per_trial_step": float("nan")}}))

    run_sweep(sweep, tmp_path / "lab", num_workers=1)

    record = Lab.open(tmp_path / "lab").study_folder("digits", 64).record()
    assert 1 <= record.pack_size <= 6
    assert recall(sweep.study(64)).pack_size == record.pack_size
