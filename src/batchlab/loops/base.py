"""The seam to a loop of one's own: whoever trains one trial and reports as it goes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from batchlab.core.seeds import Stream, generator
from batchlab.core.study import Study
from batchlab.engine.base import Point
from batchlab.errors import SpecError, TrainerError
from batchlab.loops.report import Report

RESERVED = ("batch_size", "seed", "max_steps", "checkpoint")
"""What a loop is told beside its metaparameters, which so cannot have these names."""


Started = Callable[[int], None]


def untold(group: int) -> None:
    """Take no note of a program."""


class LoopTrainer(ABC):
    """Trains one trial at a time, by code that batchlab does not look into."""

    resumes: bool
    """Whether a loop that was stopped goes on from its checkpoint folder; else it begins anew."""

    remark: str | None = None
    """What the user should know of how the last trial ended."""

    @abstractmethod
    def check(self, study: Study) -> None:
        """Raise SpecError where the loop takes something else than the study has."""

    @abstractmethod
    def reports(
        self, study: Study, point: Point, place: Path, worker: int, start: int, started: Started = untold
    ) -> Generator[Report | None]:
        """Yield what the loop reports, and None now and then while it is silent; when closed, the loop is ended.

        `place` is a folder for this trial alone. `start` is the `offset` of the last report that is known. `started`
        is told the group of processes that the loop runs in, where that is another one than ours, and 0 at its end.
        """

    def example(self, metric: str) -> str:
        """Return what a loop does to report a metric, as an error tells it."""
        return f'yield step, {{"{metric}": 0.3}}'

    def metrics(self, study: Study) -> tuple[str, ...]:
        """Return what is known to be measured."""
        return (study.goal.metric,)

    def pack_size(self, study: Study) -> int:
        """Return 1."""
        return 1

    def program(self, study: Study, points: object, state: object = None) -> Any:
        """Refuse: a loop is followed, not driven."""
        raise TrainerError(f"{study.workload.name} is trained by a loop of its own, which no other can drive.")

    @property
    def device_name(self) -> str:
        """What it trains on, as far as is known here."""
        return "its own"


def checkpoint_folder(place: Path) -> Path:
    """Return the folder in which a loop may keep what it needs to go on after a stop."""
    return place / "checkpoint"


def trial_seed(study: Study, trial_id: int) -> int:
    """Return the seed that a loop is given: another for each trial, the same at every batch size."""
    return int(generator(study.seed, Stream.LOOP, trial_id).integers(1 << 31))


def told(study: Study, point: Point, place: Path) -> dict[str, float | str]:
    """Return all that a loop may be told of its trial, by name."""
    return {
        "batch_size": study.batch_size,
        "seed": trial_seed(study, point.trial_id),
        "max_steps": study.max_steps,
        "checkpoint": str(checkpoint_folder(place).resolve()),
        **{name: _as_searched(study, name, value) for name, value in point.metaparameters.items()},
    }


def _as_searched(study: Study, name: str, value: float) -> float:
    """Return a metaparameter as its range or list has it: a whole number where it can be nothing else."""
    is_whole = name in study.search_space.names and study.search_space[name].is_whole
    return int(value) if is_whole else value


def given_names(study: Study) -> list[str]:
    """Return the metaparameters of a loop's trials; SpecError where one has the name of what every loop is told."""
    given = list(study.metaparameters(dict.fromkeys(study.search_space.names, 0.0)))
    for name in RESERVED:
        if name in given:
            raise SpecError(f"search_space.{name}: every loop is told its {name}; give this another name.")
    return given


def name_of(study: Study, trial_id: int) -> str:
    """Return how a trial is spoken of."""
    return f"Trial {trial_id} at batch size {study.batch_size}"
