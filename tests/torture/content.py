"""What a lab holds, times aside: two labs with the same content are bit-identical."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from batchlab.core.measurement import Measurements
from batchlab.store.lab import Lab
from batchlab.store.study_folder import StudyFolder

Content = dict[str, str]
"""A digest of every study by `SWEEP/BATCH_SIZE`, with what else it has."""

TIMES = {"wall_seconds", "environment"}
OUR_FILES = ("set-aside", "lock", "rejected.json")


def content(folder: Path, names: Sequence[str] | None = None) -> Content:
    """Return what the studies of a lab, or of some sweeps, hold, and its files; LabError where it is damaged."""
    lab, found = Lab.open(folder), dict[str, str]()
    for sweep in map(lab.sweep, names or lab.sweep_names()):
        results = lab.results(sweep)
        for problem in results.problems:
            raise problem
        for result in results.results:
            study = lab.study_folder(sweep.name, result.batch_size)
            found[f"{sweep.name}/{result.batch_size}"] = study_content(study)
            found[f"{sweep.name}/{result.batch_size} aside"] = aside_content(study)
        found |= {f"{sweep.name}/{size}": "unfinished" for size in results.unfinished}
    return {**found, "files": "\0".join(files(folder))}


def files(folder: Path) -> list[str]:
    """Return the names of the files that a lab should have, whatever else lies aside."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
    return [name for name in names if not name.startswith(OUR_FILES)]


def study_content(folder: StudyFolder) -> str:
    """Return a digest of the curves, the trials and the replicates of a finished study, times aside."""
    record, result = folder.record(), folder.result()
    told: list[Any] = [record.model_dump(exclude={"wall_seconds", "files", "trained_steps"})]
    told += [trial.model_dump(exclude=TIMES) for trial in result.trials]
    hasher = hashlib.sha256()
    _add(hasher, result.measurements)
    if result.confirmation is not None:
        told += [each.model_dump(exclude=TIMES) for each in result.confirmation.replicates]
        _add(hasher, folder.replicates())
    hasher.update(repr(told).encode())
    return hasher.hexdigest()


def aside_content(folder: StudyFolder) -> str:
    """Return a digest of the curves of trials that do not count."""
    aside, hasher = folder.aside(), hashlib.sha256()
    if aside is not None:
        _add(hasher, aside[0])
    return hasher.hexdigest()


def _add(hasher: Any, rows: Measurements) -> None:
    hasher.update(rows.trial_id.tobytes() + rows.step.tobytes())
    for name, values in rows.metrics.items():
        hasher.update(name.encode() + values.tobytes())
