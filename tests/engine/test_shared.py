"""Arrays in memory that a worker process shares with its parent."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from batchlab.engine.shared import SharedArray, share


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        np.arange(7, dtype=np.int64),
        np.arange(12).reshape(3, 4).T,
        np.empty((0, 3), np.float32),
        np.array(5.0),
    ],
    ids=["float32", "int64", "not contiguous", "empty", "a number"],
)
def test_an_array_comes_back_as_it_went_in(array):
    shared = SharedArray(array).array()

    assert shared.dtype == array.dtype
    assert shared.shape == array.shape
    assert np.array_equal(shared, array)


def test_it_is_a_copy():
    array = np.zeros(3)
    shared = SharedArray(array)

    array[0] = 1

    assert shared.array().tolist() == [0, 0, 0]


def double(shared):
    shared.array()[:] *= 2


def test_a_worker_reads_and_writes_the_same_memory(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])  # where the worker finds this module
    context = multiprocessing.get_context("spawn")
    shared = SharedArray(np.array([1.0, 2.0, 3.0]))
    worker = context.Process(target=double, args=(shared,))

    worker.start()
    worker.join()

    assert worker.exitcode == 0
    assert shared.array().tolist() == [2, 4, 6]


def test_a_map_larger_than_the_memory_is_opened(tmp_path):
    """A file of a tebibyte that takes up no room: all of it is a hole."""
    shape = (1 << 20, 1 << 20)
    with (tmp_path / "images").open("wb") as file:
        file.truncate(1 << 40)

    shared = share(np.memmap(tmp_path / "images", np.uint8, "r", shape=shape)).array()

    assert shared.shape == shape
    assert shared[-1, -1] == 0
