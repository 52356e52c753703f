"""Sweeps that train in no time: the noisy quadratic model, and trials whose fate is written down beforehand."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchlab.core.study import Study
from batchlab.engine.base import Point
from batchlab.run.pack import Hooks, train_pack
from batchlab.run.study_run import StudyRun
from batchlab.store.study_folder import StudyFolder

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


def _train(trainer, task, ends, shelf):
    """Train a pack here; `ends` is the list of all ends that packs have confirmed."""
    hooks = Hooks(lambda: min([task.end_step, *ends]), ends.append, lambda *_: None, lambda: False, shelf.save)
    return train_pack(trainer, task, hooks)


def _fill(study, path, trainer, pack_size, chance=None, restarts=0.0, **options):
    """Fill a study; `chance` shuffles packs, hides ends from them and throws the process away now and then."""
    chance = chance or random.Random(0)
    while True:
        run, ends = StudyRun(study, StudyFolder(path), **options), []
        if run.is_done:
            return run
        run.open_round() if run.pack_size else run.choose_pack_size(pack_size)
        while not run.is_done and chance.random() >= restarts:
            tasks = []
            while task := run.take_task():
                tasks.append(task)
            for name, task in chance.sample(tasks, len(tasks)):
                seen = ends if chance.random() < 0.5 else []  # a pack that hears nothing trains too far
                result = _train(trainer, task, seen, run.shelf(name))
                run.put_back(name) if result is None else run.keep_part(name, result)
                if chance.random() < restarts:
                    break
            else:
                continue
            break


def _outcome_of(path):
    """Return everything that is stored but times and places."""
    result = StudyFolder(path).result()
    trials = [
        (trial.trial_id, trial.status, trial.last_step, trial.diverged_step, trial.round, trial.metaparameters)
        for trial in result.trials
    ]
    rows = list(zip(result.measurements.trial_id.tolist(), result.measurements.step.tolist(), strict=True))
    return result.end_step, trials, rows, result.measurements.metrics["val/loss"].tolist()


@pytest.fixture
def fill() -> Callable[..., StudyRun]:
    """Return a function that fills a study in this process."""
    return _fill


@pytest.fixture
def outcome_of() -> Callable[[Path], Any]:
    """Return a function that returns everything that is stored of a study but times and places."""
    return _outcome_of
