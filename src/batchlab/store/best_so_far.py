"""The rows at which the goal's metric of an imported sweep improved, kept beside its studies.

They are derived: whatever is missing or out of step with the studies is made again from their measurements.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from batchlab.core.best_so_far import BestSoFar
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.errors import LabError
from batchlab.files import check_regular, whole_file
from batchlab.store.columns import to_arrow, to_numpy
from batchlab.store.lab import Lab
from batchlab.store.seal import digest
from batchlab.store.stored_sweep import StoredSweep

FILE = "best_so_far.arrow"
_FACTS = b"batchlab"
_SMALL = ("batch_size", "order", "trial_id")
"""Whole numbers that are stored in as few bytes as they need."""

_COLUMNS = ("batch_size", "order", "trial_id", "step", "value")


def read_best_so_far(lab: Lab, sweep: StoredSweep, goal: Goal) -> BestSoFar:
    """Return the improving rows of all finished studies of a sweep, for the metric and the direction of `goal`."""
    stored = _read(lab.folder / "sweeps" / sweep.name / FILE)
    if stored is not None and _fits(stored, goal) and set(stored.end_steps) == set(sweep.batch_sizes):
        return stored
    results = lab.results(sweep, [goal.metric]).results
    if not results:
        raise LabError(f"Sweep {sweep.name} in lab {lab.folder} has no finished study yet.")
    return BestSoFar.join(BestSoFar.of(result, goal.metric, goal.is_lower_better) for result in results)


def best_so_far(result: StudyResult, goal: Goal | None) -> BestSoFar | None:
    """Return the improving rows of one study, where there is a goal to tell for what."""
    return BestSoFar.of(result, goal.metric, goal.is_lower_better) if goal else None


def join_best_so_far(
    lab: Lab, name: str, goal: Goal, batch_sizes: Sequence[int], known: Mapping[int, BestSoFar | None]
) -> None:
    """Keep the improving rows of a sweep; those of studies that are not `known` are read from the lab."""
    parts = [
        known.get(size) or best_so_far(lab.study_folder(name, size).result([goal.metric]), goal) for size in batch_sizes
    ]
    _write(lab.folder / "sweeps" / name / FILE, BestSoFar.join(part for part in parts if part is not None))


def _write(path: Path, best: BestSoFar) -> None:
    facts = {
        "metric": best.metric,
        "is_lower_better": best.is_lower_better,
        "end_steps": {str(size): end_step for size, end_step in best.end_steps.items()},
    }
    columns = {name: getattr(best, name) for name in _COLUMNS}
    columns |= {name: _narrow(columns[name]) for name in _SMALL}
    arrays = {name: to_arrow(values) for name, values in columns.items()}
    facts["digest"] = _digest(facts, columns)
    table = pa.table(arrays, metadata={_FACTS: json.dumps(facts).encode()})
    with whole_file(path) as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _digest(facts: Mapping[str, Any], columns: Mapping[str, np.ndarray]) -> str:
    told = {name: value for name, value in facts.items() if name != "digest"}
    arrays = (np.ascontiguousarray(columns[name]) for name in _COLUMNS)
    return digest(json.dumps(told, sort_keys=True).encode(), *arrays)


def _narrow(values: np.ndarray) -> np.ndarray:
    return values.astype(np.min_scalar_type(values.max(initial=0)))


def _read(path: Path) -> BestSoFar | None:
    """Return the rows in a file, or None where there is none that is as it was written."""
    try:
        check_regular(path)
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
        facts = json.loads(table.schema.metadata[_FACTS])
        columns = {name: to_numpy(table[name]) for name in _COLUMNS}
        if facts["digest"] != _digest(facts, columns):
            return None
        return BestSoFar(
            metric=facts["metric"],
            is_lower_better=facts["is_lower_better"],
            end_steps={int(size): end_step for size, end_step in facts["end_steps"].items()},
            **columns,
        )
    except (LabError, OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return None


def _fits(best: BestSoFar, goal: Goal) -> bool:
    return best.metric == goal.metric and best.is_lower_better == goal.is_lower_better
