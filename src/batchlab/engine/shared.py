"""Arrays that all worker processes read from the same memory."""

from __future__ import annotations

import ctypes
import math
import multiprocessing

import numpy as np


def share(array: np.ndarray) -> SharedArray | MappedArray:
    """Return an array as all processes can read it: a memory map is opened by each, anything else is copied once."""
    return MappedArray(array) if isinstance(array, np.memmap) else SharedArray(array)


class SharedArray:
    """A copy of an array in memory that child processes inherit: nothing is left behind when they die.

    It can be handed to a process that is being started, not sent through a pipe.
    """

    def __init__(self, array: np.ndarray) -> None:
        self._shape, self._dtype = array.shape, array.dtype
        self._memory = multiprocessing.get_context("spawn").RawArray(ctypes.c_byte, max(1, array.nbytes))
        np.copyto(self.array(), array)

    def array(self) -> np.ndarray:
        """Return the shared memory as an array."""
        size = self._dtype.itemsize * math.prod(self._shape)
        return np.frombuffer(memoryview(self._memory)[:size], dtype=self._dtype).reshape(self._shape)


class MappedArray:
    """A memory map of a file, opened anew in every process."""

    def __init__(self, array: np.memmap) -> None:
        self._path, self._offset = str(array.filename), array.offset
        self._shape, self._dtype = array.shape, array.dtype

    def array(self) -> np.ndarray:
        """Return the map, read-only: a writable one would count against the memory, however large the file is."""
        return np.memmap(self._path, self._dtype, "r", self._offset, self._shape)
