"""Arrays that all worker processes read from the same memory."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
import weakref
from collections.abc import Callable
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import DupFd
from typing import Any

import numpy as np


def share(array: np.ndarray) -> SharedArray | MappedArray:
    """Return an array as all processes can read it: a memory map is opened by each, anything else is copied once."""
    return MappedArray(array) if isinstance(array, np.memmap) else SharedArray(array)


class SharedArray:
    """A copy of an array in memory that child processes inherit.

    The memory has no name, so that nothing of it is left however its processes end. It is handed to a process that is
    being started; whoever else is sent it gets a copy, a `PlacedArray`.
    """

    def __init__(self, array: np.ndarray) -> None:
        number = nameless_file()
        os.ftruncate(number, max(1, array.nbytes))
        self._open(number, array.shape, array.dtype)
        np.copyto(self.array(), array)

    def _open(self, number: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._number, self._shape, self._dtype = number, shape, dtype
        self._memory = mmap.mmap(number, max(1, self._size))
        weakref.finalize(self, os.close, number)

    @property
    def _size(self) -> int:
        return self._dtype.itemsize * math.prod(self._shape)

    def array(self) -> np.ndarray:
        """Return the shared memory as an array."""
        return np.frombuffer(memoryview(self._memory)[: self._size], dtype=self._dtype).reshape(self._shape)

    def __reduce__(self) -> tuple[Callable[..., SharedArray | PlacedArray], tuple[Any, ...]]:
        if get_spawning_popen() is None:
            return PlacedArray, (self.array(),)
        return _inherited, (DupFd(self._number), self._shape, self._dtype)


def _inherited(handle: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> SharedArray:
    """In a worker: open the memory that its parent handed over."""
    shared = SharedArray.__new__(SharedArray)
    shared._open(handle.detach(), shape, dtype)
    return shared


def nameless_file() -> int:
    """Open a file that is in no folder: in memory where the system can, else a temporary one."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("batchlab", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class PlacedArray:
    """An array that was sent: it lies wherever whoever sent it has put it, for all processes of a machine perhaps."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def array(self) -> np.ndarray:
        """Return it; it may be read-only."""
        return self._array


class MappedArray:
    """A memory map of a file, opened anew in every process."""

    def __init__(self, array: np.memmap) -> None:
        self._path, self._offset = str(array.filename), array.offset
        self._shape, self._dtype = array.shape, array.dtype

    def array(self) -> np.ndarray:
        """Return the map, read-only: a writable one would count against the memory, however large the file is."""
        return np.memmap(self._path, self._dtype, "r", self._offset, self._shape)
