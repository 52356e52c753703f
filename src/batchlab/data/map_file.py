"""Arrays that are made once, kept in a file and mapped into memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError

import numpy as np

from batchlab.data.kept import check_seal
from batchlab.errors import DataError, shown
from batchlab.files import make_folder, whole_path


def open_map(path: Path, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return a kept array, read-only; DataError where its file is none, or has another shape than it should."""
    try:
        opened: np.ndarray = np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError, OverflowError, SyntaxError, TokenError) as error:
        reason = shown(str(error))
        raise DataError(f"{path} holds no whole array: {reason}. Delete it to have it made again.") from error
    if not isinstance(opened, np.memmap) or opened.shape != (shape or opened.shape):
        raise DataError(f"{path} holds another array than it should. Delete it to have it made again.")
    check_seal(path)
    return opened


@contextmanager
def whole_map(path: Path, shape: tuple[int, ...]) -> Iterator[tuple[Path, int]]:
    """Give a file of zeros, uint8 of this shape, and where its values begin; it becomes `path` if all goes well."""
    make_folder(path.parent)
    with whole_path(path) as temporary:
        zeros = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.uint8, shape=shape)
        offset = int(zeros.offset)
        del zeros
        yield temporary, offset
