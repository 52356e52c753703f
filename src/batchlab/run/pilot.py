"""A pilot: a few trials of a study, trained for a few seconds, to learn what the study may cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from batchlab.core.study import Study
from batchlab.engine.base import Point, Trainer
from batchlab.engine.loop import train
from batchlab.run.pack import Recorder

TRIALS = 8
"""Trials of a pilot at the most."""

PACKS = 3
"""Packs of a pilot at the most, one after the other: of a model that trains one by one, so many trials."""


@dataclass(frozen=True)
class Pilot:
    """What a pilot saw."""

    trials: int
    steps: int
    """How far its best pack came."""

    goal_steps: int | None
    """Where the first of its trials met the goal; None where none did in its time."""

    best_value: float | None
    """The best value of the goal's metric."""

    seconds_per_evaluation: float
    """Of one trial."""


@dataclass(frozen=True)
class PilotTask:
    """Train the first points of a study until one meets the goal, for so many seconds at the most."""

    study: Study
    points: Sequence[Point]
    pack_size: int
    seconds: float

    def perform(self, trainer: Trainer) -> Pilot:
        """Return what was seen; packs share the time, and one that needs less leaves it to the others."""
        deadline = time.perf_counter() + self.seconds
        packs = [self.points[at : at + self.pack_size] for at in range(0, len(self.points), self.pack_size)][:PACKS]
        recorders = []
        for left, pack in zip(range(len(packs), 0, -1), packs, strict=True):
            share = (deadline - time.perf_counter()) / left
            recorders.append(_train(trainer, self.study, pack, time.perf_counter() + share))
        return self._summarise(sum(map(len, packs)), recorders)

    def _summarise(self, num_trials: int, recorders: list[Recorder]) -> Pilot:
        standings = [recorder.standing() for recorder in recorders]
        goal_steps = [standing.best_steps for standing in standings if standing.best_steps is not None]
        values = [standing.best_value for standing in standings if standing.best_value is not None]
        evaluations = sum(len(recorder.measurements()) for recorder in recorders)  # a row for each trial
        return Pilot(
            trials=num_trials,
            steps=max(standing.step for standing in standings),
            goal_steps=min(goal_steps, default=None),
            best_value=(min if self.study.goal.is_lower_better else max)(values, default=None),
            seconds_per_evaluation=sum(standing.evaluation_seconds for standing in standings) / evaluations,
        )


class _OutOfTime(Exception):
    """Ends the training of a pilot."""


def _train(trainer: Trainer, study: Study, points: Sequence[Point], deadline: float) -> Recorder:
    recorder = Recorder(study)

    def watch_the_clock() -> None:
        if time.perf_counter() > deadline:
            raise _OutOfTime

    def end_step() -> int:
        watch_the_clock()
        return 0 if recorder.goal_steps else study.max_steps

    try:
        for evaluated in train(trainer.program(study, points), study, end_step, watch_the_clock):
            recorder.add(evaluated)
    except _OutOfTime:
        pass
    return recorder
