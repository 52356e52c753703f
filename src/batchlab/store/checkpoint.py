"""Checkpoints: the state of an unfinished pack as arrays in one .npz file."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from batchlab.errors import LabError
from batchlab.files import make_folder, whole_file


def trials_of_checkpoint(checkpoint: Path) -> tuple[int, ...]:
    """Return the trials of the pack that left a checkpoint: each has a row, at the least of step 0."""
    arrays = read_checkpoint(checkpoint, ["rows.trial_id"]) or {}
    return tuple(np.unique(arrays["rows.trial_id"]).tolist())


def write_checkpoint(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays to an .npz file, whole."""
    make_folder(path.parent)
    with whole_file(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_checkpoint(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray] | None:
    """Return the arrays of a checkpoint, or only the named ones; None where there is no file."""
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in names or arrays}
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise LabError(f"{path} is corrupt: {error}. Remove it and run again.") from error
