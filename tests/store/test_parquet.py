"""Measurements as Parquet: exact, readable by others, and refused where the file is not whole."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchlab.core.measurement import Curve, Measurements
from batchlab.errors import LabError, StorageError
from batchlab.store.parquet import read_measurements, read_whole, write_measurements


def assert_same(ours: Measurements, theirs: Measurements) -> None:
    """Both tables have the same columns, bit for bit; NaN equals NaN."""
    assert list(ours.metrics) == list(theirs.metrics)
    for left, right in [
        (ours.trial_id, theirs.trial_id),
        (ours.step, theirs.step),
        *((ours.metrics[name], theirs.metrics[name]) for name in ours.metrics),
    ]:
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "measurements.parquet"


def test_a_table_comes_back_bit_for_bit(path, measurements):
    write_measurements(path, measurements)

    assert_same(read_measurements(path), measurements)
    assert np.isnan(measurements.metrics["test/loss"]).sum() == 2


def test_a_table_without_rows_comes_back(path):
    empty = Measurements.of([Curve(0, np.array([], np.int64), {"val/loss": np.array([])})])

    write_measurements(path, empty)

    assert_same(read_measurements(path), empty)


def test_a_record_travels_in_the_file(path, measurements):
    record = {"outcomes": [{"trial_id": 0, "goal_step": None}], "wall_seconds": 0.1 + 0.2}

    write_measurements(path, measurements, record)

    assert read_whole(path)[1] == record
    assert_same(read_measurements(path), measurements)


NUM_THREADS = """
import os, sys
from pathlib import Path
from batchlab.store.parquet import read_measurements

def num_threads():
    return len(os.listdir("/proc/self/task"))

before = num_threads()
read_measurements(Path(sys.argv[1]))
print(num_threads() - before)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in Linux's /proc")
def test_no_thread_is_left_that_could_outlive_python(path, measurements):
    """One that gives back Python's memory while the interpreter ends aborts the process, after its answer."""
    write_measurements(path, measurements)

    told = subprocess.run([sys.executable, "-c", NUM_THREADS, path], capture_output=True, text=True, check=True)

    assert told.stdout == "0\n"


def test_only_the_named_metrics_are_read(path, measurements):
    write_measurements(path, measurements)

    some = read_measurements(path, ["test/loss", "val/never_measured"])

    assert list(some.metrics) == ["test/loss"]
    assert len(some) == 5


def test_anyone_can_read_it(path, measurements):
    """The columns have the names of the field, and the file is compressed with lz4."""
    write_measurements(path, measurements, {"any": "record"})

    table = pd.read_parquet(path)

    assert list(table.columns) == ["trial_id", "step", "val/classification_error", "test/loss"]
    assert table["trial_id"].tolist() == [0, 0, 0, 1, 1]
    assert table["step"].tolist() == [0, 10, 20, 0, 10]
    assert table["val/classification_error"].tolist()[:4] == [0.9, 0.4, 0.1 + 0.2, 0.9]
    assert pq.ParquetFile(path).metadata.row_group(0).column(2).compression == "LZ4"


def long_table():
    steps, random = np.arange(5_000), np.random.default_rng(0)
    return Measurements.of([Curve(trial, steps, {"val/loss": random.random(5_000)}) for trial in range(3)])


@pytest.mark.parametrize("kept", [0, 3, 4, 100, 0.5, 0.99, -1])
def test_a_truncated_file_is_refused_by_its_name(path, kept):
    write_measurements(path, long_table())
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])

    with pytest.raises(LabError, match=f"^{path} is damaged: .* See what is sound with `batchlab verify`") as caught:
        read_measurements(path)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7])
def test_one_wrong_bit_in_the_data_is_noticed(path, share):
    """The end of the file is sound, so that it opens: the damage is in the columns."""
    write_measurements(path, long_table())
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 1
    path.write_bytes(content)

    with pytest.raises(LabError, match=f"^{path} is damaged"):
        read_measurements(path)


def test_a_file_of_another_kind_is_refused(path):
    path.write_text("trial_id,step\n0,0\n")

    with pytest.raises(LabError, match=f"^{path} is damaged"):
        read_measurements(path)


def test_a_missing_file_is_told(path):
    with pytest.raises(LabError, match=f"^{path} is missing. See what is sound"):
        read_measurements(path)


def test_a_disk_that_fills_up_leaves_the_old_table(path, measurements, monkeypatch):
    write_measurements(path, measurements, {"old": True})

    def refuse(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageError, match=f"Could not write {path}: .*No space left on device") as caught:
        write_measurements(path, long_table())

    assert caught.value.exit_code == 2
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert_same(read_measurements(path), measurements)
    assert read_whole(path)[1] == {"old": True}


def test_examples_are_a_column_of_whole_numbers_where_they_were_counted(tmp_path, measurements):
    path = tmp_path / "m.parquet"
    write_measurements(path, replace(measurements, examples=3 * measurements.step), {"a": 1})
    rows, record = read_whole(path)

    assert read_measurements(path, ["val/none"]).examples.tolist() == (3 * measurements.step).tolist()
    assert (rows.examples.dtype, record, "examples" in rows.metrics) == (np.int64, {"a": 1}, False)


def test_a_metric_that_a_loop_once_called_examples_stays_one(tmp_path, measurements):
    path = tmp_path / "m.parquet"
    write_measurements(path, replace(measurements, metrics={"examples": measurements.step / 2}), {"a": 1})

    rows, _ = read_whole(path)

    assert rows.examples is None
    assert rows.metrics["examples"].tolist() == (measurements.step / 2).tolist()


@pytest.mark.parametrize("kind", [pa.bool_(), pa.time32("ms"), pa.struct([("a", pa.int64())])])
def test_metrics_that_are_no_numbers_are_named(tmp_path, kind):
    table = pa.table({"trial_id": [0], "step": [1], "val/loss": pa.nulls(1, kind)})
    pq.write_table(table, tmp_path / "measurements.parquet")

    with pytest.raises(LabError, match="not of numbers"):
        read_measurements(tmp_path / "measurements.parquet")
