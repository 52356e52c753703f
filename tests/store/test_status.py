"""How far the sweeps of a lab are, from their records alone."""

from __future__ import annotations

import pytest

from batchlab.store.lab import Lab
from batchlab.store.status import SweepStatus, sweep_statuses


@pytest.fixture
def lab(tmp_path):
    return Lab.create(tmp_path / "lab")


def test_an_empty_lab_has_no_status(lab):
    assert sweep_statuses(lab) == []


def test_finished_studies_are_counted_and_running_ones_are_not(lab, make_sweep, make_record, finish):
    lab.admit(make_sweep())
    lab.admit(make_sweep({"name": "next"}))
    for batch_size in (2, 8):
        finish(lab.study_folder("small", batch_size), batch_size)
    lab.study_folder("small", 32).save_record(make_record(32))
    workload = "digits/fc_128/sgd"

    assert sweep_statuses(lab) == [
        SweepStatus("next", workload, 3, 0, complete=0, infeasible=0, incomplete=0, measurements=0),
        SweepStatus("small", workload, 3, 2, complete=2, infeasible=2, incomplete=0, measurements=10),
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 0),
        ({"sweep.trials": 3}, 1),
        ({"sweep.race_factor": 2.0}, 1),
        ({"sweep.confirm": {"seeds": 6, "points": 3}}, 0),  # the search is all there
    ],
)
def test_a_finished_study_grows_where_its_record_asks_for_less_than_the_spec(
    lab, make_sweep, finish, changes, expected
):
    lab.admit(make_sweep())
    finish(lab.study_folder("small", 8), 8)
    lab.admit(make_sweep(changes))

    assert sweep_statuses(lab)[0].growing == expected


def test_a_finished_study_grows_until_the_larger_one_has_taken_its_place(lab, make_sweep, make_record, finish):
    lab.admit(make_sweep())
    home = lab.study_folder("small", 8)
    finish(home, 8)
    home.growing.save_record(make_record(8))

    assert (sweep_statuses(lab)[0].finished, sweep_statuses(lab)[0].growing) == (1, 1)


def test_no_measurement_is_read(lab, make_sweep, finish):
    lab.admit(make_sweep())
    finish(lab.study_folder("small", 8), 8)
    path = lab.study_folder("small", 8).folder / "measurements.parquet"
    path.write_bytes(b"?" * path.stat().st_size)

    assert sweep_statuses(lab)[0].measurements == 5


def test_a_study_json_from_before_its_study_ended_was_counted_as_running(lab, make_sweep, make_record, finish):
    lab.admit(make_sweep())
    folder = lab.study_folder("small", 8)
    finish(folder, 8)
    folder.save_record(make_record(8))
    for room in ("parts", "checkpoints"):
        (folder.folder / room).rmdir()

    status = sweep_statuses(lab)[0]

    assert status.finished == 0
    assert "study.json is damaged: it does not tell of trials.json, which lies beside it" in status.problems[0]
