"""A small sweep and the outcome of one of its studies."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from batchlab.core.growth import fixed_digest
from batchlab.core.measurement import Curve, Measurements
from batchlab.core.sweep import Sweep
from batchlab.core.trial import Status, Trial
from batchlab.store.study_folder import StudyFolder
from batchlab.store.study_record import StudyRecord

SPEC: dict[str, Any] = {
    "name": "small",
    "seed": 0,
    "workload": {"dataset": "digits", "model": "fc_128", "optimizer": "sgd"},
    "sweep": {
        "batch_sizes": [2, 8, 32],
        "trials": 2,
        "max_steps": 20,
        "goal": "val/classification_error < 0.5",
        "evaluate": {"every": 10},
    },
    "search_space": {"learning_rate": {"min": 0.01, "max": 1.0, "scale": "log"}},
}


@pytest.fixture
def make_sweep() -> Callable[..., Sweep]:
    """Return a function that makes a sweep, with values set by their dotted places."""

    def make(changes: dict[str, Any] | None = None) -> Sweep:
        data = copy.deepcopy(SPEC)
        for place, value in (changes or {}).items():
            *tables, key = place.split(".")
            table = data
            for name in tables:
                table = table[name]
            table[key] = value
        return Sweep.parse(data, "small.toml")

    return make


@pytest.fixture
def measurements() -> Measurements:
    """Two trials: one to the end, one that diverged after its second evaluation and was never measured on test."""
    return Measurements.of(
        [
            Curve(
                0,
                np.array([0, 10, 20]),
                {
                    "val/classification_error": np.array([0.9, 0.4, 0.1 + 0.2]),
                    "test/loss": np.array([1e-300, 2.0, np.inf]),
                },
            ),
            Curve(1, np.array([0, 10]), {"val/classification_error": np.array([0.9, np.nan])}),
        ]
    )


@pytest.fixture
def trials() -> list[Trial]:
    return [
        Trial(
            trial_id=0, status=Status.COMPLETE, metaparameters={"learning_rate": 0.1}, last_step=20, wall_seconds=1.5
        ),
        Trial(
            trial_id=1,
            status=Status.INFEASIBLE,
            metaparameters={"learning_rate": 0.9},
            last_step=10,
            diverged_step=13,
            environment={"host": "here"},
        ),
    ]


@pytest.fixture
def make_record(make_sweep: Callable[..., Sweep]) -> Callable[..., StudyRecord]:
    """Return a function that makes the record of the study at a batch size."""

    def make(batch_size: int = 8, **fields: Any) -> StudyRecord:
        points = ({"learning_rate": 0.1}, {"learning_rate": 0.9})
        sweep = make_sweep()
        return StudyRecord(study=sweep.study(batch_size), points=points, sweep=fixed_digest(sweep), **fields)

    return make


@pytest.fixture
def finish(
    make_record: Callable[..., StudyRecord], measurements: Measurements, trials: list[Trial]
) -> Callable[[StudyFolder, int], None]:
    """Return a function that fills a study's folder with a finished outcome."""

    def fill(folder: StudyFolder, batch_size: int = 8) -> None:
        folder.save_record(make_record(batch_size))
        counts = {Status.COMPLETE: 1, Status.INFEASIBLE: 1, Status.INCOMPLETE: 0}
        outcome = {"state": "finished", "pack_size": 2, "end_step": 20, "counts": counts, "num_measurements": 5}
        folder.finish(make_record(batch_size, **outcome), trials, measurements)

    return fill
