"""The calibration file in the user's cache folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from batchlab.run.pack_size_cache import Calibration, calibration_path, recall, remember

MEASURED = Calibration(16, 2.5e-5)


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
    remember(other, Calibration(4, 1e-3))
    remember(study, Calibration(8, 1e-5))

    assert recall(study) == Calibration(8, 1e-5)
    assert recall(other) == Calibration(4, 1e-3)


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
