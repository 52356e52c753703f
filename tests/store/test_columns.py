"""Columns between NumPy and Arrow."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from batchlab.store.columns import to_arrow, to_numpy


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.uint8, np.uint32, np.int32])
def test_numbers_come_back_as_they_were(dtype):
    values = np.array([0, 1, 200, 3], dtype=dtype)

    back = to_numpy(pa.chunked_array([to_arrow(values)]))

    assert back.dtype == dtype
    assert back.tolist() == values.tolist()


def test_nan_and_infinity_are_numbers():
    back = to_numpy(pa.chunked_array([to_arrow(np.array([np.nan, -np.inf, -0.0]))]))

    np.testing.assert_array_equal(back, [np.nan, -np.inf, -0.0])


def test_strided_arrays_are_taken_in_their_order():
    assert to_arrow(np.arange(6)[::2]).to_pylist() == [0, 2, 4]


def test_chunks_are_joined_and_slices_are_respected():
    column = pa.chunked_array([pa.array([1.0, 2.0, 3.0]).slice(1), pa.array([], pa.float64()), pa.array([4.0])])

    assert to_numpy(column).tolist() == [2.0, 3.0, 4.0]


def test_an_empty_column_keeps_its_type():
    assert to_numpy(pa.chunked_array([], pa.int64())).dtype == np.int64


def test_what_is_missing_is_nan():
    np.testing.assert_array_equal(to_numpy(pa.chunked_array([pa.array([1.0, None])])), [1.0, np.nan])


def test_a_lab_is_read_without_pandas(tmp_path):
    """Wherever pandas is installed, Arrow would import it for a fifth of a second."""
    code = (
        "import sys, pathlib, numpy as np\n"
        "from batchlab.core.measurement import Measurements\n"
        "from batchlab.store.parquet import read_measurements, write_measurements\n"
        f"path = pathlib.Path({str(tmp_path / 'm.parquet')!r})\n"
        "write_measurements(path, Measurements(np.arange(3), np.arange(3), {'val/a': np.ones(3)}))\n"
        "read_measurements(path)\n"
        "sys.exit('pandas' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
