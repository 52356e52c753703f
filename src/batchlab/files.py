"""Files that are whole or not there: written to a temporary name, synced, then renamed."""

from __future__ import annotations

import json
import os
import platform
import shutil
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pydantic_core

from batchlab.errors import VERIFY, DamagedError, InputError, LabError, StorageError, shown
from batchlab.processes import is_running

TEMPORARY = ".tmp"
MOST_PATH = 1_000
"""Characters of a path that a message shows."""

MOST_JSON_BYTES = 1 << 30
"""More than any record of a lab: a million points have 100 MB."""


@contextmanager
def whole_path(path: Path, sync: bool = True) -> Iterator[Path]:
    """Give a temporary path; the file written there takes the place of `path` only once all of it is on the disk.

    Whatever goes wrong, `path` holds what it held before. A full or read-only disk is a StorageError, and so is a
    device or a pipe at `path`: a file would take its place. Without `sync` that holds for a kill but not for a power
    cut, until `sync_files` has made up for it.
    """
    _check_replaceable(path)
    temporary = _temporary(path)
    try:
        yield temporary
        if sync:
            sync_path(temporary)
        temporary.replace(path)
        if sync:
            sync_path(path.parent)
    except BaseException as error:
        with suppress(OSError):  # a disk that refuses to write may refuse to remove as well
            temporary.unlink()
        if isinstance(error, OSError) and not isinstance(error, StorageError):
            raise storage_error(path, error) from error
        raise


def _check_replaceable(path: Path) -> None:
    """Raise StorageError where a file would take the place of something that is none."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return  # there is nothing, or the writing will say what is wrong
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):  # a folder refuses by itself
        raise StorageError(f"Could not write {shown(str(path), MOST_PATH)}: it is no regular file.")


@contextmanager
def whole_file(path: Path, sync: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes the place of `path` as `whole_path` says."""
    with whole_path(path, sync) as temporary, temporary.open("wb") as file:
        yield file


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Make a folder beside `path` that is gone afterwards, with all that is in it."""
    folder = _temporary(path)
    make_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_file(path: Path, content: bytes, sync: bool = True) -> None:
    """Write `content` to `path`, making its folder; it is all there or what was there before."""
    make_folder(path.parent)
    with whole_file(path, sync) as file:
        file.write(content)


def storage_error(path: Path, error: OSError) -> StorageError:
    """Return the one-line error for a write that the system refused."""
    return StorageError(
        f"Could not write {path}: {error.strerror or error}. Nothing half-written is kept; "
        "make room or choose another folder, then run the same command again."
    )


def sync_path(path: Path) -> None:
    """Make the content of a file, or the renames in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_files(folders: Iterable[Path]) -> None:
    """Bring the files of some folders to the disk, those of many at a time: the disk orders its own work."""
    folders = list(folders)
    paths = [*(path for folder in folders for path in folder.iterdir() if path.is_file()), *folders]
    with ThreadPoolExecutor(16) as threads:
        for _ in threads.map(sync_path, paths):
            pass


def make_folder(folder: Path) -> None:
    """Make a folder and its parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(folder, error) from error


def _temporary(path: Path) -> Path:
    """Return where this process writes what becomes `path`; what processes that were killed left there is removed.

    The name holds the machine, for others may share the folder: whether their processes live cannot be seen from here.
    """
    start = f"{path.name}.{platform.node()}."
    with suppress(OSError):
        for name in os.listdir(path.parent):
            process = name.removeprefix(start).removesuffix(TEMPORARY)
            if name == f"{start}{process}{TEMPORARY}" and process.isdecimal() and not is_running(int(process)):
                _remove(path.with_name(name))
    return path.with_name(f"{start}{os.getpid()}{TEMPORARY}")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_json(path: Path, data: Any, sync: bool = True) -> None:
    """Write `data` as readable JSON."""
    with whole_file(path, sync) as file:
        file.write(pydantic_core.to_json(data, indent=1, inf_nan_mode="constants") + b"\n")


def read_json(path: Path) -> Any:
    """Return the JSON in `path`; DamagedError names the file if it is not JSON."""
    return parse_json(read_bounded(path, MOST_JSON_BYTES), path)


def parse_json(content: bytes, path: Path) -> Any:
    """Return the JSON that a file held; DamagedError names the file if it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged: {shown(str(error))}. {VERIFY}") from None


def read_bounded(path: Path, most_bytes: int, kind: type[InputError] = LabError) -> bytes:
    """Return the bytes of a regular file of a sensible size; a pipe, a device or a giant is refused unread."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe that nobody writes to is not waited for
        with open(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise kind(f"Could not read {shown(str(path), MOST_PATH)}: it is no regular file.")
            if facts.st_size > most_bytes:
                size = f"{facts.st_size:,} bytes, more than {most_bytes:,}"
                raise kind(f"Could not read {shown(str(path), MOST_PATH)}: it has {size}.")
            return file.read(facts.st_size)
    except OSError as error:
        raise kind(f"Could not read {shown(str(path), MOST_PATH)}: {error.strerror}.") from error
