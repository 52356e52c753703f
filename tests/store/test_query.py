"""What a connection to a lab shows, and that nothing can be done through it but ask."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from batchlab.errors import DamagedError, LabError
from batchlab.store.lab import Lab
from batchlab.store.query import connect


@pytest.fixture
def make_lab(tmp_path, make_sweep, finish, make_record):
    """Return a function that makes a lab with a finished study at batch size 8 and an unfinished one at 2."""

    def make(name="lab"):
        lab = Lab.create(tmp_path / name)
        lab.admit(make_sweep())
        finish(lab.study_folder("small", 8), 8)
        lab.study_folder("small", 2).save_record(make_record(2))
        return lab

    return make


ROWS = "select sweep, batch_size, trial_id, step from measurements order by all"
EXPECTED = [("small", 8, 0, 0), ("small", 8, 0, 10), ("small", 8, 0, 20), ("small", 8, 1, 0), ("small", 8, 1, 10)]


@pytest.mark.parametrize("name", ["lab", "a?b[c]*", "it's {one}", "l*b", "[lab]"])
def test_a_folder_of_any_name_is_taken_as_it_is(make_lab, name):
    make_lab("lab")
    make_lab("aab*")

    assert connect(make_lab(name).folder).execute(ROWS).fetchall() == EXPECTED


def test_trials_come_with_what_only_some_of_them_have(make_lab):
    rows = connect(make_lab().folder).execute(
        "select trial_id, status, metaparameters.learning_rate, diverged_step from trials order by all"
    )

    assert rows.fetchall() == [(0, "COMPLETE", 0.1, None), (1, "INFEASIBLE", 0.9, 13)]


def test_a_metric_that_one_study_lacks_is_null_there(make_lab, make_record, measurements, trials):
    lab = make_lab()
    folder, rows = lab.study_folder("small", 32), replace(measurements, metrics={"val/new": measurements.step / 2})
    folder.finish(make_record(32, state="finished", end_step=20, num_measurements=5), trials, rows)

    found = connect(lab.folder).execute('select batch_size, sum("val/new") from measurements group by all order by all')

    assert found.fetchall() == [(8, None), (32, 20.0)]


def test_a_lab_without_a_finished_study_has_no_rows(tmp_path, make_sweep):
    Lab.create(tmp_path / "lab").admit(make_sweep())

    connection = connect(tmp_path / "lab")

    assert connection.execute(ROWS).fetchall() == []
    assert connection.execute("select count(*) from trials where status = 'COMPLETE'").fetchall() == [(0,)]


def test_files_that_no_study_lists_are_not_read(make_lab):
    lab = make_lab()
    table = lab.study_folder("small", 8).folder / "measurements.parquet"
    for place in ("small/2", "small/32", "other/8", "small/growing/8"):
        stray = lab.folder / "sweeps" / place / "measurements.parquet"
        stray.parent.mkdir(parents=True, exist_ok=True)
        stray.write_bytes(table.read_bytes())
    for place in ("small/32", "other/8", "small/2"):
        (lab.folder / "sweeps" / place / "measurements.parquet").unlink()

    assert connect(lab.folder).execute(ROWS).fetchall() == EXPECTED


@pytest.mark.parametrize("name", ["measurements.parquet", "trials.json", "study.json"])
def test_a_damaged_file_is_named_instead_of_answering(make_lab, name):
    lab = make_lab()
    path = lab.study_folder("small", 8).folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    with pytest.raises(DamagedError, match=name):
        connect(lab.folder)


def test_a_value_that_fits_into_no_table_is_named(tmp_path):
    """In a lab from before there were seals, where nobody notices the edit itself."""
    lab = Path(shutil.copytree(Path(__file__).parent / "labs" / "format-1", tmp_path / "lab"))
    path = lab / "sweeps" / "finished" / "16" / "trials.json"
    path.write_text(path.read_text().replace('"cores": 2', f'"cores": {10**30}', 1))

    with pytest.raises(DamagedError, match=f"^{path} is damaged: .*too large"):
        connect(lab)


def test_no_lab_is_no_lab(tmp_path):
    with pytest.raises(LabError, match="There is no lab"):
        connect(tmp_path)


def everything(folder):
    return {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


WRITES = [
    "copy measurements to '{out}'",
    "copy measurements to '{table}' (format parquet)",
    "copy (select 1) to '/dev/stdout'",
    "attach '{out}'",
    "export database '{out}'",
    "import database '{lab}'",
    "install httpfs",
    "load httpfs",
    "select * from read_text('{trials}')",
    "select * from read_parquet('{table}')",
    "select * from glob('{lab}/*')",
    "select * from 'https://example.com/table.parquet'",
    "set enable_external_access = true",
    "set lock_configuration = false",
    "set temp_directory = '{lab}'",
    "set profiling_output = '{out}'",
    "pragma profiling_output = '{out}'",
    "set log_query_path = '{out}'",
    "call enable_logging(storage = 'file', storage_config = {{'path': '{out}'}})",
    "create persistent secret mine (type http)",
    "select * from everything",
]


@pytest.mark.parametrize("statement", WRITES)
def test_nothing_can_be_written_or_fetched_through_a_connection(make_lab, tmp_path, monkeypatch, statement):
    lab = make_lab()
    folder = lab.study_folder("small", 8).folder
    monkeypatch.chdir(tmp_path)
    before, connection = everything(tmp_path), connect(lab.folder)
    names = {"out": tmp_path / "out", "lab": lab.folder, "table": folder / "measurements.parquet"}

    with pytest.raises(duckdb.Error):
        connection.execute(statement.format(**names, trials=folder / "trials.json"))

    assert everything(tmp_path) == before
    assert connection.execute(ROWS).fetchall() == EXPECTED


def test_a_relative_folder_is_found_after_a_change_of_folder(make_lab, tmp_path, monkeypatch):
    make_lab()
    monkeypatch.chdir(tmp_path)
    connection = connect(tmp_path.relative_to(os.getcwd()) / "lab")

    monkeypatch.chdir("/")

    assert connection.execute(ROWS).fetchall() == EXPECTED


def test_examples_are_those_stored_and_of_older_tables_those_of_one_batch_size(
    make_lab, make_record, measurements, trials
):
    lab = make_lab()
    rows = replace(measurements, examples=measurements.step**2)
    lab.study_folder("small", 32).finish(
        make_record(32, state="finished", end_step=20, num_measurements=5), trials, rows
    )

    found = connect(lab.folder).execute("select batch_size, step, examples from measurements order by all").fetchall()

    steps = sorted(measurements.step.tolist())
    assert found == [*((8, step, 8 * step) for step in steps), *((32, step, step**2) for step in steps)]
