"""Where something made from dataset files is kept: a path that changes with all that it is made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from batchlab.data.files import cache_dir

Origin = tuple[str, int]
"""The name and the size of a file that something was made from."""


def origins_of(paths: Iterable[Path], root: Path) -> list[Origin]:
    """Return the name below `root` and the size of each file."""
    return [(path.relative_to(root).as_posix(), path.stat().st_size) for path in paths]


def kept_path(kind: str, name: str, suffix: str, origins: Iterable[Origin], /, **settings: str | int | float) -> Path:
    """Return the path in the cache folder for what is made from `origins` with these settings.

    >>> kept_path("tokens", "lm1b-val", ".npy", [("heldout", 12)], num_tokens=64).name
    'lm1b-val-bb6460285897890f.npy'
    """
    described = json.dumps([list(origins), settings], sort_keys=True)
    key = hashlib.sha256(described.encode()).hexdigest()[:16]
    return cache_dir() / kind / f"{name}-{key}{suffix}"
