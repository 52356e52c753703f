"""Errands: short tasks of a worker beside the packs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from batchlab.core.study import Study
from batchlab.engine.base import Trainer
from batchlab.engine.pack_size import calibrate


class Errand(Protocol):
    """A short task of one worker: it reports nothing before its end, and cannot be stopped."""

    @property
    def study(self) -> Study:
        """What it is about."""
        ...

    @property
    def doing(self) -> str:
        """What a worker does for it, as a sentence may say, such as `timing steps`."""
        ...

    def perform(self, trainer: Trainer) -> Any:
        """Return what the errand was for."""
        ...


@dataclass(frozen=True)
class CalibrateTask:
    """Find the fastest pack size for a study."""

    study: Study
    metaparameters: dict[str, float]

    doing: ClassVar[str] = "timing steps"

    def perform(self, trainer: Trainer) -> tuple[int, float]:
        """Return the pack size and its seconds per trial-step."""
        return calibrate(trainer, self.study, self.metaparameters)
