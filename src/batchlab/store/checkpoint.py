"""Checkpoints: the state of an unfinished pack as arrays in one .npz file, with its study and a digest."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from batchlab.files import is_there, make_folder, read_bounded, whole_file
from batchlab.store.seal import changed, damaged, digest

MOST_BYTES = 1 << 36
_STUDY, _DIGEST = "study", "digest"


def write_checkpoint(path: Path, arrays: Mapping[str, np.ndarray], study: str) -> None:
    """Write arrays to an .npz file, whole; `study` is the fingerprint of the study that they belong to."""
    make_folder(path.parent)
    held = {**arrays, _STUDY: np.array(study)}
    with whole_file(path) as file:
        np.savez(file, allow_pickle=False, **held, **{_DIGEST: np.array(_digest(held))})


def read_checkpoint(path: Path, study: str | None = None) -> dict[str, np.ndarray] | None:
    """Return the arrays of a checkpoint; None where there is no file.

    DamagedError where they are not as they were written, or not of the study with the fingerprint `study`. With None,
    of a lab from before there were seals, they may be of any and lack the digest.
    """
    if not is_there(path):
        return None
    arrays = _load(path)
    found = str(arrays.pop(_DIGEST, ""))
    if (found or study is not None) and found != _digest(arrays):
        raise changed(path)
    if str(arrays.pop(_STUDY, "")) != str(study) and study is not None:
        raise damaged(path, "it is of another study")
    return arrays


def trials_of_checkpoint(checkpoint: Path) -> tuple[int, ...]:
    """Return the trials of the pack that left a checkpoint: each has a row, at the least of step 0."""
    arrays = read_checkpoint(checkpoint) or {}
    if "rows.trial_id" not in arrays:
        raise damaged(checkpoint, "it names no trials")
    return tuple(np.unique(arrays["rows.trial_id"]).tolist())


def _load(path: Path) -> dict[str, np.ndarray]:
    content = read_bounded(path, MOST_BYTES)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays}
    except Exception as error:  # whatever a damaged archive makes two libraries raise, and that is much
        raise damaged(path, next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")) from None


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    pieces: list[Any] = []
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        pieces += [f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode(), array.tobytes()]
    return digest(*pieces)
