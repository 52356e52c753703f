"""The user's calibration file: which pack size was the fastest, by machine, workload and batch size."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from batchlab.core.study import Study
from batchlab.errors import BatchlabError
from batchlab.files import make_folder, read_json, write_json
from batchlab.run.environment import cpu_name, package_versions


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
    """Return what was measured for such a study on this machine, if it was."""
    path = calibration_path()
    try:
        entry = read_json(path).get(_key(study)) if path.exists() else None
        return Calibration(**entry) if entry else None
    except (BatchlabError, TypeError, AttributeError):
        return None  # a cache that cannot be read is measured anew


def remember(study: Study, calibration: Calibration) -> None:
    """Keep a measurement for the next time."""
    path = calibration_path()
    try:
        make_folder(path.parent)
        entries = read_json(path) if path.exists() else {}
    except BatchlabError:
        entries = {}
    known = entries if isinstance(entries, dict) else {}
    try:
        write_json(path, {**known, _key(study): calibration.__dict__})
    except BatchlabError:
        return  # without a cache the next run measures again


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
