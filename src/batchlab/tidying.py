"""Tidying a lab: only files that go by our own names are removed, what else lies there is its user's.

No link is followed, and nothing is touched in a folder that this process holds no longer (`locked_folders`).
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

from batchlab.errors import VERIFY, LabError
from batchlab.files import is_folder, is_there, make_folder, mode_of, names_in, storage_error
from batchlab.locked_folders import check_folder

IsOwn = Callable[[str], bool]
"""Tells by its name whether a file is ours."""


def remove_file(path: Path) -> None:
    """Remove a file, or a link, where there is one."""
    check_folder(path.parent)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error


def remove_files(folder: Path, is_own: IsOwn) -> None:
    """Remove the files of a folder that are ours, and then the folder where it is empty; a link to one is left."""
    check_folder(folder.parent)
    for name in names_in(folder):
        if is_own(name) and not is_folder(folder / name):
            with suppress(OSError):  # what is left does no harm, and goes the next time
                (folder / name).unlink()
    remove_if_empty(folder)


def remove_if_empty(folder: Path) -> None:
    """Remove a folder that holds nothing."""
    with suppress(OSError):  # it is not there, is a link, or holds something
        folder.rmdir()


def move(path: Path, place: Path) -> None:
    """Give a file or a folder another place; StorageError where the system refuses, as where it is taken."""
    for folder in (path.parent, place.parent):
        check_folder(folder)
    try:
        path.rename(place)
    except OSError as error:
        raise storage_error(place, error) from error


def move_rest(folder: Path, place: Path) -> None:
    """Let what is left in a folder go to another one, with a number behind its name where that is taken.

    Folders of one name become one. Then the folder, which is empty, is removed.
    """
    for name in names_in(folder):
        if is_folder(folder / name) and is_folder(place / name):
            move_rest(folder / name, place / name)
        else:
            move(folder / name, free_place(place / name))
    remove_if_empty(folder)


def free_place(place: Path) -> Path:
    """Return a place where nothing is: this one, or the next with a number behind its name."""
    places = (place if number == 1 else place.with_name(f"{place.name}.{number}") for number in count(1))
    return next(path for path in places if not is_there(path))


def copy_files(source: Path, place: Path) -> None:
    """Copy a folder with the regular files and folders in it; LabError names a link, a pipe or a device."""
    make_folder(place)
    for name in names_in(source):
        path = source / name
        if is_folder(path):
            copy_files(path, place / name)
            continue
        if not stat.S_ISREG(mode_of(path) or 0):
            kind = "a link" if path.is_symlink() else "no regular file"
            raise LabError(f"{path} is {kind}, which no lab holds. {VERIFY}")
        try:
            shutil.copyfile(path, place / name, follow_symlinks=False)
        except OSError as error:
            raise storage_error(place / name, error) from error
