"""StudyResult: what a study left behind, as the analyses read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batchlab.core.clock import constant_examples, constant_steps
from batchlab.core.confirmation import Confirmation
from batchlab.core.measurement import Measurements
from batchlab.core.protocol import IMPORTED, Protocol
from batchlab.core.space import SearchSpace
from batchlab.core.trial import Status, Trial
from batchlab.errors import InputError


@dataclass(frozen=True)
class StudyResult:
    """The trials of one study, in ascending id, and all their measurements, which tell their examples."""

    workload: str
    batch_size: int
    """That of every update, or where it is scheduled, of the first."""

    trials: tuple[Trial, ...]
    measurements: Measurements
    search_space: SearchSpace
    end_step: int
    """The step to which its complete trials trained: the budget, or where the race ended."""

    protocol: Protocol = IMPORTED
    confirmation: Confirmation | None = None
    has_whole_data: bool = True
    """Whether it was trained on all of the dataset that its workload's name tells."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "measurements", self.measurements.counted(self.batch_size))

    @property
    def examples(self) -> np.ndarray:
        """The examples seen before each row [num_rows], repeats counted."""
        assert self.measurements.examples is not None
        return self.measurements.examples

    @property
    def has_one_batch_size(self) -> bool:
        """Whether all updates had the batch size of the study.

        A loop of one's own may report its examples at some rows only; the rows between repeat the last count.
        """
        is_repeated = np.diff(self.examples, prepend=-1) == 0
        return bool(np.all(is_repeated | (self.examples == constant_examples(self.measurements.step, self.batch_size))))

    @property
    def end_examples(self) -> int:
        """The examples to which its complete trials trained; where they differ, the fewest."""
        if self.has_one_batch_size:
            return constant_examples(self.end_step, self.batch_size)
        curves = (self.measurements.trial_id == trial.trial_id for trial in self.first_complete())
        return min((int(self.examples[rows].max(initial=0)) for rows in curves), default=0)

    def end_step_within(self, max_examples: float) -> int:
        """Return how far a budget of examples leads; where trials differ, the farthest."""
        if self.has_one_batch_size:
            return constant_steps(max_examples, self.batch_size)
        return int(self.measurements.step[self.examples <= max_examples].max(initial=0))

    def first_complete(self, num_trials: int | None = None) -> tuple[Trial, ...]:
        """Return the first `num_trials` complete trials in ascending id; all of them where None."""
        if num_trials is not None and num_trials < 1:
            raise InputError(f"num_trials = {num_trials} selects no trial. Use 1 or more.")
        complete = [trial for trial in self.trials if trial.status is Status.COMPLETE]
        return tuple(complete[:num_trials])

    def count(self, status: Status) -> int:
        """Return how many trials ended that way."""
        return sum(trial.status is status for trial in self.trials)

    def steps_of(self, trial_id: int, metric: str) -> np.ndarray:
        """Return the steps of one trial at which a metric was measured."""
        is_there = ~np.isnan(self.measurements.metrics[metric])
        return np.asarray(self.measurements.step[is_there & (self.measurements.trial_id == trial_id)])

    def rows_of(self, trials: tuple[Trial, ...]) -> Measurements:
        """Return the measurements of these trials only."""
        return self.measurements.where(np.isin(self.measurements.trial_id, [trial.trial_id for trial in trials]))
