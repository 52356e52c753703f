"""The user's calibration file: which pack size was the fastest, by machine, workload and batch size."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batchlab.core.study import Study
from batchlab.errors import BatchlabError
from batchlab.files import make_folder, parse_json, read_bounded, write_json
from batchlab.run.environment import cpu_name, package_versions

LONGEST = 1e6
"""Seconds that an update may take."""

MOST_BYTES = 1 << 24
"""Of the file: a hundred thousand measurements."""


@dataclass(frozen=True)
class Calibration:
    """The outcome of a measurement."""

    pack_size: int
    seconds_per_trial_step: float


def calibration_path() -> Path:
    """Return where the file lies: $XDG_CACHE_HOME or ~/.cache, folder batchlab."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "batchlab" / "calibration.json"


def recall(study: Study) -> Calibration | None:
    """Return what was measured for such a study on this machine, if it was; what makes no sense is measured anew."""
    calibration = _parsed(_entries().get(_key(study)))
    return calibration if calibration is not None and calibration.pack_size <= study.trials else None


def remember(study: Study, calibration: Calibration) -> None:
    """Keep a measurement for the next time."""
    known = {key: entry for key, entry in _entries().items() if _parsed(entry)}
    with suppress(BatchlabError, OSError, RuntimeError):  # without a cache the next run measures again
        make_folder(calibration_path().parent)
        write_json(calibration_path(), {**known, _key(study): calibration.__dict__})


def _entries() -> dict[str, Any]:
    """Return what the file holds: nothing, where it is not a file of this user's that can be read."""
    try:
        path = calibration_path()
        entries = parse_json(read_bounded(path, MOST_BYTES), path)
        is_mine = path.lstat().st_uid == os.geteuid()
    except (BatchlabError, OSError, RuntimeError):  # RuntimeError: nobody knows where the user's home is
        return {}
    return entries if is_mine and isinstance(entries, dict) else {}


def _parsed(entry: Any) -> Calibration | None:
    """Return an entry of the file, or None where it is none."""
    if not isinstance(entry, dict) or entry.keys() != {"pack_size", "seconds_per_trial_step"}:
        return None
    size, seconds = entry["pack_size"], entry["seconds_per_trial_step"]
    is_size = isinstance(size, int) and not isinstance(size, bool) and size >= 1
    is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < LONGEST
    return Calibration(size, float(seconds)) if is_size and is_time else None


def _key(study: Study) -> str:
    facts = {
        "machine": [platform.machine(), cpu_name(), os.cpu_count()],
        "torch": package_versions().get("torch"),
        "workload": study.workload.plain(),
        "batch_size": study.batch_size,
        "trials": study.trials,
        "engine": study.engine,
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    return f"{study.workload.name} B={study.batch_size} {digest}"
