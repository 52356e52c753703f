"""All that lies below a folder, so that two moments can be compared."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

import xxhash

LOCK = "lock"
"""The one file that commands may touch although they only read: it holds a process number and nothing else."""


def snapshot(folder: Path) -> dict[str, str]:
    """Return what every path below a folder is: a digest of a file, the target of a link, else its kind."""
    return {str(path.relative_to(folder)): what_is(path) for path in paths(folder)}


def paths(folder: Path) -> Iterable[Path]:
    """Yield every path below a folder; links are not followed."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(place) / name


def what_is(path: Path) -> str:
    """Return what a path is, in a word: its content where it is a file."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link to {path.readlink()}"
    if stat.S_ISREG(mode):
        return xxhash.xxh3_128_hexdigest(path.read_bytes())
    return "folder" if stat.S_ISDIR(mode) else "pipe or device"


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return what appeared, changed or is gone, but for locks."""
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return [f"{name}: {_change(before, after, name)}" for name in names if Path(name).name != LOCK]


def _change(before: dict[str, str], after: dict[str, str], name: str) -> str:
    return "is gone" if name not in after else "changed" if name in before else "appeared"
