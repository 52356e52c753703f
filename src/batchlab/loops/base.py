"""The seam to a loop of one's own: whoever trains one trial and reports as it goes."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Protocol

from batchlab.core.seeds import Stream, generator
from batchlab.core.study import Study
from batchlab.engine.base import Point
from batchlab.loops.report import Report

RESERVED = ("batch_size", "seed", "max_steps", "checkpoint")
"""What a loop is told beside its metaparameters, which so cannot have these names."""


class LoopTrainer(Protocol):
    """Trains one trial at a time, by code that batchlab does not look into."""

    resumes: bool
    """Whether a loop that was stopped goes on from its checkpoint folder; else it begins anew."""

    remark: str | None
    """What the user should know of how the last trial ended."""

    def reports(self, study: Study, point: Point, place: Path, worker: int, start: int) -> Generator[Report | None]:
        """Yield what the loop reports, and None now and then while it is silent; when closed, the loop is ended.

        `place` is a folder for this trial alone. `start` is the `offset` of the last report that is known.
        """
        ...


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
        **point.metaparameters,
    }


def name_of(study: Study, trial_id: int) -> str:
    """Return how a trial is spoken of."""
    return f"Trial {trial_id} at batch size {study.batch_size}"
