"""How labs of older formats become labs of this one: numbered steps, each applied once, by the next writer.

Readers never change a lab: what they need of an older one they make up while reading (`upgraded_sweep`). A step may be
cut short by a kill and is then applied again, so each leaves alone what it has done already; the lab's number is
written last.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from batchlab.files import read_json, write_json
from batchlab.store.checkpoint import trials_of_checkpoint
from batchlab.store.pack_name import pack_name


def m002_points_are_a_sequence(folder: Path) -> None:
    """Format 2: a sampler has a version, and packs are named by their trials instead of by round and place."""
    for path in folder.glob("sweeps/*/sweep.json"):
        data = read_json(path)
        if data != (upgraded := upgraded_sweep(data)):
            write_json(path, upgraded)
    for path in folder.glob("sweeps/*/*/checkpoints/*.npz"):
        path.rename(path.with_name(f"{pack_name(trials_of_checkpoint(path))}.npz"))


MIGRATIONS: dict[int, Callable[[Path], None]] = {2: m002_points_are_a_sequence}
FORMAT = max(MIGRATIONS)
"""Raised when an older batchlab could no longer read what this one writes."""


def migrate(folder: Path, version: int) -> None:
    """Bring a lab of format `version` to this one; its lock is held."""
    for number in range(version + 1, FORMAT + 1):
        MIGRATIONS[number](folder)
        write_json(folder / "lab.json", {"format": number})


def upgraded_sweep(data: Any) -> Any:
    """Return a stored spec as this format has it: before a sampler had a version, it went by the first."""
    plan = data.get("sweep") if isinstance(data, dict) else None
    return {**data, "sweep": {"sampler_version": 1, **plan}} if isinstance(plan, dict) else data
