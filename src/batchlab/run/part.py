"""A finished pack: its curves, what became of its trials, and where it was trained."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from batchlab.core.measurement import Measurements
from batchlab.core.study import Study
from batchlab.errors import VERIFY, DamagedError
from batchlab.search.race import Outcome
from batchlab.store.pack_check import check_part, repeats
from batchlab.store.pack_folder import PackFolder


@dataclass(frozen=True)
class Part:
    """The result of one pack, as one file of the study's folder stores it."""

    measurements: Measurements
    outcomes: tuple[Outcome, ...]
    trained_steps: int
    """Updates computed for all its trials."""

    wall_seconds: float
    environment: dict[str, Any]

    @classmethod
    def read(cls, measurements: Measurements, record: dict[str, Any], study: Study) -> Self:
        """Return the part of a table and the record that travels with it; DamagedError where it has no outcomes."""
        measurements = measurements.counted(study.batch_size)
        try:
            outcomes = tuple(Outcome(**each) for each in record["outcomes"])
            trained = record.get("trained_steps", sum(outcome.last_step for outcome in outcomes))
            return cls(measurements, outcomes, trained, record["wall_seconds"], record["environment"])
        except (KeyError, TypeError, AttributeError):
            raise DamagedError(f"A finished pack tells no outcomes. {VERIFY}") from None

    def record(self) -> dict[str, Any]:
        """Return the record that is stored with the table."""
        return {
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
            "trained_steps": self.trained_steps,
            "wall_seconds": self.wall_seconds,
            "environment": self.environment,
        }

    def only(self, trial_ids: Collection[int]) -> Part:
        """Return the part as if only these of its trials had been in it."""
        return Part(
            self.measurements.where(np.isin(self.measurements.trial_id, list(trial_ids))),
            tuple(outcome for outcome in self.outcomes if outcome.trial_id in trial_ids),
            self.trained_steps,
            self.wall_seconds,
            self.environment,
        )

    def seconds_of(self, outcome: Outcome) -> float:
        """Return a trial's share of the time of its pack, by the steps it trained."""
        steps = max(1, sum(each.last_step for each in self.outcomes))
        return self.wall_seconds * outcome.last_step / steps


def read_parts(folder: PackFolder, study: Study) -> dict[str, Part]:
    """Return the finished packs of a study by name; DamagedError names one that is not of it, or is there twice."""
    found = folder.parts(study.fingerprint)
    for name, (rows, record) in found.items():
        check_part(folder.part_path(name), rows, record, study)
    for _, error in repeats({folder.part_path(name): record["outcomes"] for name, (_, record) in found.items()}):
        raise error
    return {name: Part.read(*part, study) for name, part in found.items()}


def farthest(parts: Sequence[Part]) -> dict[int, tuple[Outcome, Part]]:
    """Return the outcome of every trial and the part it comes from; of one trained twice, the run that went farther.

    A longer run repeats the shorter one and goes on.
    """
    found: dict[int, tuple[Outcome, Part]] = {}
    for part in parts:
        for outcome in part.outcomes:
            known = found.get(outcome.trial_id)
            if known is None or outcome.last_step > known[0].last_step:
                found[outcome.trial_id] = outcome, part
    return found
