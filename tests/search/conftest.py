"""Sweeps that train in no time: the noisy quadratic model, and trials whose fate is written down beforehand."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.engine.base import Point

ROOT = Path(__file__).parents[2]

NQM: dict[str, Any] = {
    "name": "nqm",
    "workload": {"dataset": {"name": "nqm", "dimension": 10}, "model": "quadratic", "optimizer": "sgd"},
    "sweep": {
        "batch_sizes": [1, 16, 256],
        "trials": 12,
        "max_steps": 400,
        "goal": "val/risk <= 0.1",
        "sampler": "grid",
        "evaluate": {"every": 1},
    },
    "search_space": {"learning_rate": {"min": 0.01, "max": 1.999, "scale": "log", "points": 12}},
}

DIGITS: dict[str, Any] = {
    "name": "digits",
    "workload": {"dataset": "digits", "model": "fc_128", "optimizer": "nesterov_momentum"},
    "sweep": {
        "batch_sizes": [16, 64],
        "trials": 6,
        "max_steps": 60,
        "goal": "val/classification_error < 0.2",
        "evaluate": {"growth": 1.2},
    },
    "search_space": {
        "learning_rate": {"min": 1e-3, "max": 10.0, "scale": "log"},
        "momentum": {"min": 0.0, "max": 0.999, "scale": "reverse_log"},
    },
    "engine": {"pack_size": 4},
}

SCRIPTED: dict[str, Any] = {
    "name": "scripted",
    "workload": {"dataset": "stage", "model": "actor", "optimizer": "script"},
    "sweep": {
        "batch_sizes": [8],
        "trials": 4,
        "max_steps": 100,
        "goal": "val/loss < 0.5",
        "race_factor": 1.5,
        "evaluate": {"every": 10},
    },
    "search_space": {"learning_rate": {"min": 0.1, "max": 1.0}},
    "engine": {"pack_size": 2},
}


def _maker(spec: dict[str, Any]) -> Callable[..., Sweep]:
    def make(changes: Mapping[str, Any] | None = None) -> Sweep:
        data = copy.deepcopy(spec)
        for place, value in (changes or {}).items():
            *tables, key = place.split(".")
            table = data
            for name in tables:
                table = table.setdefault(name, {})
            table[key] = value
        return Sweep.parse(data, "test.toml")

    return make


@pytest.fixture
def make_nqm() -> Callable[..., Sweep]:
    """Return a function that makes a sweep of the noisy quadratic model, with values set by their dotted places."""
    return _maker(NQM)


@pytest.fixture
def make_digits() -> Callable[..., Sweep]:
    """Return a function that makes a short sweep of digits."""
    return _maker(DIGITS)


@pytest.fixture
def make_scripted() -> Callable[..., Sweep]:
    """Return a function that makes a sweep for `ScriptedTrainer`."""
    return _maker(SCRIPTED)


@dataclass(frozen=True)
class ScriptedTrainer:
    """Trains nothing: each trial meets the goal and diverges at the steps that are written down for it."""

    goal_at: Mapping[int, int] = field(default_factory=dict)
    diverges_at: Mapping[int, int] = field(default_factory=dict)
    chunk: int = 7

    def metrics(self, study: Study) -> tuple[str, ...]:
        return ("val/loss",)

    def program(self, study: Study, points: Sequence[Point], state: Mapping[str, np.ndarray] | None = None) -> Any:
        return ScriptedProgram(self, points, state)


class ScriptedProgram:
    """A loss of 1 before the goal, and of 0 from there on; it returns after `chunk` updates."""

    def __init__(
        self, script: ScriptedTrainer, points: Sequence[Point], state: Mapping[str, np.ndarray] | None
    ) -> None:
        self.script = script
        self.step = 0 if state is None else int(state["step"])
        self.trial_ids = np.array([point.trial_id for point in points])
        self.diverged: dict[int, int] = {}
        self._drop()

    def evaluate(self) -> dict[str, np.ndarray]:
        goals = np.array([self.script.goal_at.get(trial_id, 2**40) for trial_id in self.trial_ids.tolist()])
        return {"val/loss": np.where(self.step >= goals, 0.0, 1.0)}

    def advance(self, target: int) -> None:
        self.step = min(target, self.step + self.script.chunk)
        self._drop()

    def state(self) -> dict[str, np.ndarray]:
        return {"step": np.array(self.step)}

    def _drop(self) -> None:
        for trial_id, step in self.script.diverges_at.items():
            if step <= self.step and trial_id in self.trial_ids:
                self.diverged[trial_id] = step
                self.trial_ids = self.trial_ids[self.trial_ids != trial_id]


@pytest.fixture
def scripted() -> type[ScriptedTrainer]:
    """The class, which no test file can import: it is handed to them."""
    return ScriptedTrainer


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test an empty cache, and let worker processes import what is defined in test files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(ROOT))
