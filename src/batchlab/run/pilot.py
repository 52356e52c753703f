"""A pilot: a few trials of a study, trained for a few seconds, to learn what the study may cost."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from batchlab.core.study import Study
from batchlab.engine.base import Point, Trainer
from batchlab.engine.loop import train
from batchlab.run.recorder import Recorder

TRIALS = 8
"""Trials of a pilot at the most."""

PACKS = 3
"""Packs of a pilot at the most, one after the other: of a model that trains one by one, so many trials."""

STARTING_SECONDS = 5.0
"""No further pack begins once the starts of those before have taken longer: one that is slower is waited for once."""


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
    """Train the first points of a study until one meets the goal, for so many seconds at the most.

    What comes before counts apart: a program is made, and evaluated at its first step.
    """

    study: Study
    points: Sequence[Point]
    pack_size: int
    seconds: float

    doing: ClassVar[str] = "training the pilot"

    def perform(self, trainer: Trainer) -> Pilot:
        """Return what was seen; packs share the time, and one that needs less leaves it to the others."""
        packs = [self.points[at : at + self.pack_size] for at in range(0, len(self.points), self.pack_size)][:PACKS]
        recorders, starting, training = list[Recorder](), 0.0, 0.0
        for left, pack in zip(range(len(packs), 0, -1), packs, strict=True):
            began = time.perf_counter()
            flight = _Flight(trainer, self.study, pack)
            ready = time.perf_counter()
            starting += ready - began
            is_last = left == 1 or starting > STARTING_SECONDS
            flight.train(ready + (self.seconds - training) / (1 if is_last else left))
            training += time.perf_counter() - ready
            recorders.append(flight.recorder)
            if is_last:
                break
        return self._summarise(sum(map(len, packs[: len(recorders)])), recorders)

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


class _Flight:
    """A pack in training: made, and evaluated at its first step."""

    def __init__(self, trainer: Trainer, study: Study, points: Sequence[Point]) -> None:
        self.recorder, self._study, self._deadline = Recorder(study), study, math.inf
        self._rows = train(trainer.program(study, points), study, self._end_step, self._watch_the_clock)
        self.recorder.add(next(self._rows))

    def train(self, deadline: float) -> None:
        """Train until a trial meets the goal, or the time is up."""
        self._deadline = deadline
        try:
            for evaluated in self._rows:
                self.recorder.add(evaluated)
        except _OutOfTime:
            pass

    def _watch_the_clock(self) -> None:
        if time.perf_counter() > self._deadline:
            raise _OutOfTime

    def _end_step(self) -> int:
        self._watch_the_clock()
        return 0 if self.recorder.goal_steps else self._study.max_steps
