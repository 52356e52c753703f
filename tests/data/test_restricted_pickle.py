from __future__ import annotations

import os
import pickle
import resource
from contextlib import suppress

import numpy as np
import pytest

from batchlab.data.restricted_pickle import read_pickle
from batchlab.errors import DataError


class Hostile:
    """Runs a command in any plain reader."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def test_a_hostile_pickle_is_refused_by_file_and_name_and_runs_nothing(tmp_path):
    content = pickle.dumps({b"data": Hostile(f"touch {tmp_path}/ran")}, protocol=4)

    with pytest.raises(DataError, match=r"^data_batch_3: it names (posix|nt)\.system, which no data file needs"):
        read_pickle(content, "data_batch_3")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name", ["builtins\neval", "builtins\ngetattr", "numpy\nload", "numpy.core.multiarray\nscalar", "_codecs\nencode"]
)
def test_every_other_name_is_refused(name):
    with pytest.raises(DataError, match=f"it names {name.replace(chr(10), '.')}"):
        read_pickle(f"c{name}\n.".encode(), "batch")


@pytest.mark.parametrize("array", [np.arange(6, dtype=np.uint8).reshape(2, 3), np.array([1.5, -2.0], ">f4")])
@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_lists_and_numbers_come_back(array, protocol):
    read = read_pickle(pickle.dumps({b"data": array, b"labels": [3, 1]}, protocol=protocol), "batch")

    assert read[b"labels"] == [3, 1]
    assert np.array_equal(read[b"data"].values, array)


def test_fortran_order_is_kept():
    array = np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3))

    assert np.array_equal(read_pickle(pickle.dumps(array, protocol=4), "batch").values, array)


def test_an_array_of_objects_is_refused():
    content = pickle.dumps(np.array([{}, []], dtype=object), protocol=4)

    with pytest.raises(DataError, match=r"^batch: the pickle is truncated or damaged \(an array of object\)"):
        read_pickle(content, "batch")


@pytest.mark.parametrize("kept", [0, 1, 20, 60, -1])
def test_a_truncated_pickle_is_one_error_by_name(kept):
    content = pickle.dumps({b"data": np.zeros(9, np.uint8)}, protocol=4)[:kept]

    with pytest.raises(DataError, match="^batch: the pickle is truncated or damaged"):
        read_pickle(content, "batch")


@pytest.mark.parametrize("content", [b"Nr\xff\xff\xff\xff.", b"Np99999999999\n.", b"\x8e" + b"\xff" * 7 + b"\x7f."])
def test_no_room_is_made_for_what_is_not_there(content):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with suppress(DataError):
        read_pickle(content, "batch")

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


def test_a_number_of_5_000_digits_is_one_line():
    with pytest.raises(DataError, match="the pickle is truncated or damaged"):
        read_pickle(b"I" + b"9" * 5000 + b"\n.", "batch")
