"""Sweeps that train in no time: the noisy quadratic model, and trials whose fate is written down beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchlab.core.study import Study
from batchlab.engine.base import Point

ROOT = Path(__file__).parents[2]


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
