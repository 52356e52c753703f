"""Where something made from dataset files is kept: a path that changes with all that it is made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from batchlab.data.files import cache_dir

Origin = tuple[str, int, int]
"""The name and the size of a file that something was made from, and when it was last changed, in nanoseconds.

To read all files again would take too long. Where the name is a digest of the content, the time is 0.
"""


def origins_of(paths: Iterable[Path], root: Path) -> list[Origin]:
    """Return the name below `root`, the size and the time of each file."""
    found = [(path.relative_to(root).as_posix(), path.stat()) for path in paths]
    return [(name, facts.st_size, facts.st_mtime_ns) for name, facts in found]


def kept_path(kind: str, name: str, suffix: str, origins: Iterable[Origin], /, **settings: str | int | float) -> Path:
    """Return the path in the cache folder for what is made from `origins` with these settings.

    >>> kept_path("tokens", "lm1b-val", ".npy", [("heldout", 12, 0)], num_tokens=64).name
    'lm1b-val-7b60278de57da698.npy'
    """
    key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for origin, num_bytes, changed in origins:  # one by one: there may be millions
        key.update(f"\n{origin!a} {num_bytes} {changed}".encode())
    return cache_dir() / kind / f"{name}-{key.hexdigest()[:16]}{suffix}"
