"""Files that are made from a dataset and kept in the cache folder: sealed when made, and checked when opened.

Seals are small files in a folder beside `data`: `seals/tokens/NAME.json` for `data/tokens/NAME`. What was kept before
there were seals is sealed when it is next opened.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from batchlab.data.files import cache_dir
from batchlab.errors import DataError, LabError, StorageError
from batchlab.files import read_bounded, write_file

MOST_HASHED_BYTES = 1 << 30
"""A larger file is known by its size and by blocks all over it: to read a hundred gigabytes takes minutes."""

NUM_BLOCKS = 512
_BLOCK_BYTES = 1 << 20
_MOST_SEAL_BYTES = 1 << 12


def is_kept(path: Path) -> bool:
    """Return whether there is a file; DataError where there is a pipe or a device in its place."""
    if os.path.lexists(path) and not path.is_file():
        raise DataError(f"{path} is no regular file. Delete it to have it made again.")
    return path.exists()


def check_seal(path: Path) -> None:
    """Raise DataError where a file is not as it was made; one without a seal gets it."""
    seal = _seal_path(path)
    if seal is None:
        return
    if not seal.exists():
        with suppress(StorageError):  # a cache folder may be read-only
            set_seal(path)
    elif _read_seal(seal) != _digest(path):
        raise DataError(f"{path} is damaged: it is not as it was made. Delete it to have it made again.")


def set_seal(path: Path) -> None:
    """Seal a file of the cache folder as it is now."""
    seal = _seal_path(path)
    if seal is not None:
        write_file(seal, json.dumps(_digest(path)).encode(), sync=False)


def _seal_path(path: Path) -> Path | None:
    """Return where the seal of a file is; None of one that is not in the cache folder."""
    cache = cache_dir()
    return cache.parent / "seals" / f"{path.relative_to(cache)}.json" if path.is_relative_to(cache) else None


def _read_seal(path: Path) -> object:
    try:
        return json.loads(read_bounded(path, _MOST_SEAL_BYTES))
    except (LabError, ValueError, RecursionError):
        return None  # no seal that is like any file


def _digest(path: Path) -> dict[str, str | int]:
    size, digest = path.stat().st_size, hashlib.sha256()
    stride = _BLOCK_BYTES if size <= MOST_HASHED_BYTES else size // NUM_BLOCKS
    with path.open("rb") as file:
        for start in range(0, size, stride):
            file.seek(start)
            digest.update(file.read(_BLOCK_BYTES))
        file.seek(max(0, size - _BLOCK_BYTES))
        digest.update(file.read(_BLOCK_BYTES))
    return {"bytes": size, "sha256": digest.hexdigest()}
