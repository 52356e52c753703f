"""The folders that this process writes to alone, and how it sees that one is no longer its own.

Whoever locks a folder (`store.lock`) says so here, and every write looks first (`files`): the folder and its lock file
must still be those that were locked, and below the folder no link is followed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from batchlab.errors import LabError, LabLostError, UnreadableError


@dataclass(frozen=True)
class Held:
    """A locked folder. It can be sent to worker processes, which write for the one that holds it."""

    folder: Path
    """Absolute; it may itself be a link, as the user gave it."""

    lock: Path
    identities: tuple[tuple[int, int], tuple[int, int]]
    """What tells the folder and the lock file from others: their devices and inodes."""

    def check(self) -> None:
        """Raise LabLostError where the folder or its lock was removed, moved or replaced."""
        if (_identity(self.folder, os.stat), _identity(self.lock, os.lstat)) != self.identities:
            raise LabLostError(
                f"{self.lock} was removed or replaced while this process held it: the lab is no longer its own, and "
                "nothing more is written to it. Run the same command again once nobody else writes there."
            )

    def check_folder(self, folder: Path) -> None:
        """Raise LabError where `folder`, or one between it and the held one, is a link."""
        folder = Path(os.path.abspath(folder))
        if self.folder in folder.parents:
            refuse_links(self.folder, folder)


_held: list[Held] = []


@contextmanager
def holding(folder: Path, lock: Path, lock_number: int) -> Iterator[None]:
    """Look after a folder while its lock is held; `lock_number` is the open lock file."""
    identities = _told(os.stat(folder)), _told(os.fstat(lock_number))
    held = Held(Path(os.path.abspath(folder)), Path(os.path.abspath(lock)), identities)
    _held.append(held)
    try:
        held.check()
        yield
    finally:
        _held.remove(held)


def all_held() -> tuple[Held, ...]:
    """Return the folders that this process holds, to be taken up by a worker of it."""
    return tuple(_held)


def take_up(held: Iterable[Held]) -> None:
    """In a worker process: write for the process that holds these folders, and only while it does."""
    _held[:] = held


def check_held() -> None:
    """Raise LabLostError where a folder that this process holds is no longer its own."""
    for held in _held:
        held.check()


def check_folder(folder: Path) -> None:
    """Raise LabError where nothing must be written to a folder: a held one is lost, or a link stands on the way."""
    for held in _held:
        held.check()
        held.check_folder(folder)


def refuse_links(folder: Path, path: Path) -> None:
    """Raise LabError where `path`, or a folder between it and `folder`, is a link."""
    for place in (path, *path.parents):
        if place == folder:
            return
        if os.path.islink(place):
            raise LabError(f"{place} is a link, which no lab holds. Put what it points to in its place.")


def _identity(path: Path, look: Callable[[Path], os.stat_result]) -> tuple[int, int] | None:
    """Return what tells a file from others; None where there is none."""
    try:
        return _told(look(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnreadableError(f"Could not read {path}: {error.strerror}.") from error


def _told(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino
