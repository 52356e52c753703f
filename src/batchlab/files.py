"""Files that are whole or not there: written to a temporary name, synced, then renamed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from batchlab.errors import LabError, StorageError

TEMPORARY = ".tmp"


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes the place of `path` only once all of it is on the disk.

    Whatever goes wrong, `path` holds what it held before. A full or read-only disk is a StorageError.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):  # a disk that refuses to write may refuse to remove as well
            temporary.unlink()
        if isinstance(error, OSError) and not isinstance(error, StorageError):
            raise storage_error(path, error) from error
        raise


def write_file(path: Path, content: bytes) -> None:
    """Write `content` to `path`, making its folder; it is all there or what was there before."""
    make_folder(path.parent)
    with whole_file(path) as file:
        file.write(content)


def storage_error(path: Path, error: OSError) -> StorageError:
    """Return the one-line error for a write that the system refused."""
    return StorageError(
        f"Could not write {path}: {error.strerror or error}. Nothing half-written is kept; "
        "make room or choose another folder, then run the same command again."
    )


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(folder, error) from error


def write_json(path: Path, data: Any) -> None:
    """Write `data` as readable JSON."""
    with whole_file(path) as file:
        file.write(json.dumps(data, indent=1, ensure_ascii=False).encode() + b"\n")


def read_json(path: Path) -> Any:
    """Return the JSON in `path`; LabError names the file if it is not JSON."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise LabError(f"Could not read {path}: {error.strerror}.") from error
    except ValueError as error:
        raise LabError(f"{path} is corrupt: {error}. Restore it from a copy, or remove it and run again.") from error
