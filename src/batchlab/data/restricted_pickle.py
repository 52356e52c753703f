"""Reads the arrays, lists and strings of a pickle file without running anything that the file names.

A pickle is a program; here it may name three things, those that make up an array of numbers, and gets a plain
stand-in for each. Any other name, and so any call, is refused.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

import numpy as np

from batchlab.errors import DataError, shown

_WAY_OUT = "Replace the file with the published one."


class StoredArray:
    """Stands in for an array while the file is read; `values` is the array itself."""

    values: np.ndarray

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, is_fortran, content = state
        self.values = np.frombuffer(content, kind.dtype).reshape(shape, order="F" if is_fortran else "C")


class _Kind:
    """Stands in for a dtype: numbers only, and nothing of it can be changed later."""

    def __init__(self, name: bytes | str, *_: object) -> None:
        self.dtype = np.dtype(name.decode("ascii") if isinstance(name, bytes) else name)
        if self.dtype.kind not in "biuf":
            raise ValueError(f"an array of {self.dtype}")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder("=" if state[1] in (b"|", "|") else _text(state[1]))


def _new_array(*_: object) -> StoredArray:
    return StoredArray()


# Python 2 wrote `numpy.core`; numpy 2 calls it `numpy._core`.
_ADMITTED: dict[tuple[str, str], object] = {
    ("numpy.core.multiarray", "_reconstruct"): _new_array,
    ("numpy._core.multiarray", "_reconstruct"): _new_array,
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): _Kind,
}


class _Unpickler(pickle._Unpickler):
    """The reader that is written in Python: that in C makes room for any number of things that a file says it has."""

    def __init__(self, content: bytes, source: str) -> None:
        super().__init__(io.BytesIO(content), encoding="bytes")
        self._source = source

    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in _ADMITTED:
            raise DataError(
                f"{self._source}: it names {shown(module)}.{shown(name)}, which no data file needs. {_WAY_OUT}"
            )
        return _ADMITTED[module, name]


def read_pickle(content: bytes, source: str) -> Any:
    """Return what a pickle file holds; `source` names it in errors. Strings of Python 2 are bytes.

    An array is given as StoredArray. DataError where the file names anything else or is damaged.

    >>> read_pickle(b"(dp0\\nS'labels'\\np1\\n(lp2\\nI7\\nas.", "batch")
    {b'labels': [7]}
    """
    try:
        return _Unpickler(content, source).load()
    except DataError:
        raise
    except (
        pickle.UnpicklingError,
        ArithmeticError,
        AttributeError,
        EOFError,
        ImportError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
        struct.error,
    ) as error:
        raise DataError(f"{source}: the pickle is truncated or damaged ({shown(str(error))}). {_WAY_OUT}") from error


def _text(value: bytes | str) -> Any:
    return value.decode("ascii") if isinstance(value, bytes) else value
