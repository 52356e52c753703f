"""A sweep with the curves of its trials: what figures of single trials are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from batchlab.analysis import StepsToResult, Throughput, WorkloadSummary, is_cut_short
from batchlab.analysis.text import count, listed
from batchlab.core.result import StudyResult
from batchlab.errors import InputError


@dataclass(frozen=True, kw_only=True)
class TrainedSweep:
    """The studies that a figure shows, and the summary of all."""

    summary: WorkloadSummary
    studies: tuple[StudyResult, ...]
    """In ascending batch size."""

    num_train_examples: int | None = None
    """What an epoch is; None where that is not known."""

    throughput: Throughput | None = None
    """Step times of one worker, where they were measured."""

    @property
    def rows(self) -> tuple[StepsToResult, ...]:
        """The answers of the studies that are shown."""
        sizes = {study.batch_size for study in self.studies}
        return tuple(row for row in self.summary.rows if row.batch_size in sizes)

    @property
    def is_cut_short(self) -> bool:
        """Whether a race ended the trials of a study that is shown."""
        return any(map(is_cut_short, self.studies))

    @property
    def share(self) -> str:
        """How many of the batch sizes are shown, as a sentence; empty where all are."""
        shown, known = len(self.studies), len(self.summary.rows)
        return "" if shown == known else f"Shown: {count(shown)} of {count(known)} batch sizes."

    def only(self, batch_sizes: Sequence[int]) -> TrainedSweep:
        """Return the sweep with these batch sizes; InputError for one that it does not have."""
        known = [study.batch_size for study in self.studies]
        for batch_size in batch_sizes:
            if batch_size not in known:
                raise InputError(
                    f"{self.summary.workload} has no finished study of batch size {count(batch_size)}. "
                    f"Choose from {listed(known)}."
                )
        return replace(self, studies=tuple(study for study in self.studies if study.batch_size in batch_sizes))

    def spread(self, most: int) -> tuple[TrainedSweep, list[int]]:
        """Return the sweep with `most` batch sizes at the most, the ends and others evenly between, and the rest."""
        chosen = evenly([study.batch_size for study in self.studies], most)
        left_out = [study.batch_size for study in self.studies if study.batch_size not in chosen]
        return self.only(chosen), left_out


def evenly(values: Sequence[int], most: int) -> list[int]:
    """Return `most` of some values at the most, two or more: the first, the last and others evenly between.

    >>> evenly([1, 2, 4, 8, 16, 32, 64], 4)
    [1, 4, 16, 64]
    """
    if len(values) <= most:
        return list(values)
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]
