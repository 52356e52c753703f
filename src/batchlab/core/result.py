"""StudyResult: what a study left behind, as the analyses read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batchlab.core.confirmation import Confirmation
from batchlab.core.measurement import Measurements
from batchlab.core.protocol import IMPORTED, Protocol
from batchlab.core.space import SearchSpace
from batchlab.core.trial import Status, Trial


@dataclass(frozen=True)
class StudyResult:
    """The trials of one study, in ascending id, and all their measurements."""

    workload: str
    batch_size: int
    trials: tuple[Trial, ...]
    measurements: Measurements
    search_space: SearchSpace
    end_step: int
    """The step to which its complete trials trained: the budget, or where the race ended."""

    protocol: Protocol = IMPORTED
    confirmation: Confirmation | None = None

    def first_complete(self, num_trials: int | None = None) -> tuple[Trial, ...]:
        """Return the first `num_trials` complete trials in ascending id; all of them where None."""
        complete = [trial for trial in self.trials if trial.status is Status.COMPLETE]
        return tuple(complete[:num_trials])

    def count(self, status: Status) -> int:
        """Return how many trials ended that way."""
        return sum(trial.status is status for trial in self.trials)

    def rows_of(self, trials: tuple[Trial, ...]) -> Measurements:
        """Return the measurements of these trials only."""
        return self.measurements.where(np.isin(self.measurements.trial_id, [trial.trial_id for trial in trials]))
