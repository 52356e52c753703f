"""The example's workload as a sweep, as it is or changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from batchlab.analysis import example_workload, summarise
from batchlab.core.goal import Goal
from batchlab.core.protocol import Protocol
from batchlab.core.result import StudyResult
from batchlab.plots import TrainedSweep


@pytest.fixture
def race() -> Protocol:
    """A race whose budget lies far beyond the end of the example's studies."""
    return Protocol(kind="race", race_factor=1.5, max_steps=20_000)


@pytest.fixture
def make_trained() -> Callable[..., TrainedSweep]:
    """Build a sweep of the studies in `analysis.example`, all with `changes`."""

    def make(
        goal: str = "val/classification_error < 0.08",
        studies: Sequence[StudyResult] | None = None,
        num_train_examples: int | None = None,
        **changes: object,
    ) -> TrainedSweep:
        found = [replace(study, **changes) for study in studies or example_workload()]  # type: ignore[arg-type]
        summary = summarise(found, Goal.read(goal))
        return TrainedSweep(summary=summary, studies=tuple(found), num_train_examples=num_train_examples)

    return make
