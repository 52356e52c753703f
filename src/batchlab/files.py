"""Files that are whole or not there: written to a temporary name, synced, then renamed."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pydantic_core

from batchlab.errors import VERIFY, DamagedError, InputError, LabError, StorageError, UnreadableError, shown
from batchlab.locked_folders import check_folder
from batchlab.processes import is_running

TEMPORARY = ".tmp"
_OWN = re.compile(rf"(?P<start>.+)\.(?P<process>[1-9][0-9]{{0,9}}){re.escape(TEMPORARY)}", re.DOTALL)
MOST_PATH = 1_000
"""Characters of a path that a message shows."""

MOST_JSON_BYTES = 1 << 30
"""More than any record of a lab: a million points have 100 MB."""


@contextmanager
def whole_path(path: Path, sync: bool = True) -> Iterator[Path]:
    """Give a temporary path; the file written there takes the place of `path` only once all of it is on the disk.

    Whatever goes wrong, `path` holds what it held before. A full or read-only disk is a StorageError, and so is a
    device or a pipe at `path`: a file would take its place. Without `sync` that holds for a kill but not for a power
    cut, until `sync_files` has made up for it. In a folder that this process holds (`held`), it must still hold it at
    the end.
    """
    _check_replaceable(path)
    check_folder(path.parent)
    temporary = _temporary(path)
    _make_new(temporary, path)
    try:
        yield temporary
        if sync:
            sync_path(temporary)
        check_folder(path.parent)
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
        if not folder.is_symlink():
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
    paths = [
        *(path for folder in folders for path in folder.iterdir() if path.is_file() and not path.is_symlink()),
        *folders,
    ]
    with ThreadPoolExecutor(16) as threads:
        for _ in threads.map(sync_path, paths):
            pass


def make_folder(folder: Path) -> None:
    """Make a folder and its parents."""
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(folder, error) from error


def is_temporary(name: str, pattern: str) -> bool:
    """Return whether a name is that of a temporary file of ours, for a file whose name the pattern matches.

    >>> is_temporary("study.json.host.123.tmp", "study.json"), is_temporary("mine.tmp", "study.json")
    (True, False)
    """
    match = _OWN.fullmatch(name)
    return match is not None and re.match(rf"(?:{pattern})(?:\.|$)", match["start"]) is not None


def _temporary(path: Path) -> Path:
    """Return where this process writes what becomes `path`; what processes that were killed left there is removed.

    The name holds the machine, for others may share the folder: whether their processes live cannot be seen from here.
    """
    start = f"{path.name}.{platform.node()}"
    with suppress(OSError):
        for name in os.listdir(path.parent):
            match = _OWN.fullmatch(name)
            if match is not None and match["start"] == start and not is_running(int(match["process"])):
                _remove(path.with_name(name))
    return path.with_name(f"{start}.{os.getpid()}{TEMPORARY}")


def _remove(path: Path) -> None:
    if path.is_symlink():  # we make none: it is somebody else's
        return
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _make_new(temporary: Path, path: Path) -> None:
    """Make an empty file that was not there; one that a process of our number left behind goes first."""
    try:
        if temporary.is_symlink() or temporary.is_dir():
            raise LabError(f"{temporary} is in the way: it is a link or a folder. Move it elsewhere.")
        temporary.unlink(missing_ok=True)
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666))
    except OSError as error:
        raise storage_error(path, error) from error


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
    """Return the bytes of a regular file of a sensible size; a pipe, a device or a giant is refused unread.

    A file of a lab (`kind` is LabError) is not read through a link; where the system refuses it, by a lack of
    permission say, that is an UnreadableError.
    """
    is_of_lab = issubclass(kind, LabError)
    way_out = f" {VERIFY}" if is_of_lab else ""
    try:
        # A pipe that nobody writes to is not waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (os.O_NOFOLLOW if is_of_lab else 0))
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise kind(f"Could not read {shown(str(path), MOST_PATH)}: it is no regular file.{way_out}")
            if facts.st_size > most_bytes:
                size = f"{facts.st_size:,} bytes, more than {most_bytes:,}"
                raise kind(f"Could not read {shown(str(path), MOST_PATH)}: it has {size}.{way_out}")
            with open(descriptor, "rb", closefd=False) as file:
                return file.read(facts.st_size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise (unreadable(path, error) if is_of_lab else kind(_refused(path, error))) from error


def unreadable(path: Path, error: OSError) -> LabError:
    """Return the one-line error for something of a lab that could not be looked at, and why: never as damage."""
    if error.errno == errno.ELOOP:
        return LabError(f"Could not read {shown(str(path), MOST_PATH)}: it is a link, which no lab holds. {VERIFY}")
    is_gone = isinstance(error, FileNotFoundError | NotADirectoryError)
    return (LabError if is_gone else UnreadableError)(_refused(path, error))


def _refused(path: Path, error: OSError) -> str:
    return f"Could not read {shown(str(path), MOST_PATH)}: {error.strerror or error}."


def mode_of(path: Path) -> int | None:
    """Return the mode of something of a lab, a link itself and not its target; None where there is nothing.

    UnreadableError where nobody can tell.
    """
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def is_there(path: Path) -> bool:
    """Return whether something of a lab is there, a link included."""
    return mode_of(path) is not None


def is_folder(path: Path) -> bool:
    """Return whether a folder of a lab is there, and no link to one."""
    return stat.S_ISDIR(mode_of(path) or 0)


def check_regular(path: Path) -> None:
    """Raise LabError where something of a lab is there that is no regular file: a link, a pipe, a device, a folder."""
    mode = mode_of(path)
    if mode is not None and not stat.S_ISREG(mode):
        raise LabError(f"Could not read {shown(str(path), MOST_PATH)}: it is no regular file. {VERIFY}")


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder of a lab, sorted; none where there is no folder."""
    if not is_folder(folder):
        return []
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:  # gone since
        return []
    except OSError as error:
        raise unreadable(folder, error) from error
