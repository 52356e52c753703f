"""Small studies written by hand, and rows of a curve made without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from batchlab.analysis import ConfirmedSteps, StepsToResult, best_of, median_interval
from batchlab.core.confirmation import Confirmation
from batchlab.core.measurement import Curve, Measurements
from batchlab.core.protocol import Protocol
from batchlab.core.result import StudyResult
from batchlab.core.space import Range, SearchSpace
from batchlab.core.trial import Status, Trial

FULL = Protocol(kind="full")
SPACE = SearchSpace({"learning_rate": Range(min=1e-3, max=10.0, scale="log")})


@pytest.fixture
def make_result() -> Callable[..., StudyResult]:
    """Build a study from one list of values for each trial, measured every ten steps from 0."""

    def make(
        curves: Sequence[Sequence[float]],
        statuses: Mapping[int, Status] | None = None,
        batch_size: int = 8,
        workload: str = "digits/fc_128/sgd",
        metric: str = "val/loss",
        learning_rate: float = 0.1,
        protocol: Protocol = FULL,
        confirmation: Confirmation | None = None,
        end_step: int | None = None,
    ) -> StudyResult:
        trials = tuple(
            Trial(
                trial_id=trial_id,
                status=(statuses or {}).get(trial_id, Status.COMPLETE),
                metaparameters={"learning_rate": learning_rate},
                last_step=10 * (len(values) - 1),
            )
            for trial_id, values in enumerate(curves)
        )
        measurements = Measurements.of(
            [
                Curve(trial_id, 10 * np.arange(len(values)), {metric: np.array(values, dtype=float)})
                for trial_id, values in enumerate(curves)
            ]
        )
        end_step = end_step or 10 * (max((len(values) for values in curves), default=1) - 1)
        return StudyResult(workload, batch_size, trials, measurements, SPACE, end_step, protocol, confirmation)

    return make


@pytest.fixture
def make_row() -> Callable[..., StepsToResult]:
    """Build one row of a curve from the steps of the trials that met the goal."""

    def make(
        batch_size: int,
        reached_steps: Sequence[int] = (),
        num_trials: int | None = None,
        end_step: int = 10_000,
        metaparameters: Mapping[str, float] | None = None,
        at_boundary: tuple[str, ...] = (),
        protocol: Protocol = FULL,
        replicate_steps: Sequence[int | None] | None = None,
    ) -> StepsToResult:
        steps = tuple(sorted(reached_steps))
        num_trials = num_trials or max(1, len(steps))
        point = dict(metaparameters or {"learning_rate": 0.1})
        trial = Trial(trial_id=3, status=Status.COMPLETE, metaparameters=point, last_step=end_step)
        return StepsToResult(
            batch_size=batch_size,
            steps=steps[0] if steps else None,
            trial=trial if steps else None,
            at_boundary=at_boundary,
            num_trials=num_trials,
            reached_steps=steps,
            end_step=end_step,
            complete=num_trials,
            infeasible=0,
            incomplete=0,
            best_of=best_of(steps, num_trials),
            confirmed=_confirmed(replicate_steps, trial) if replicate_steps else None,
            protocol=protocol,
        )

    return make


def _confirmed(replicate_steps: Sequence[int | None], trial: Trial) -> ConfirmedSteps:
    met = [step for step in replicate_steps if step is not None]
    return ConfirmedSteps(
        steps=float(np.median(met)) if len(met) == len(replicate_steps) else None,
        interval=median_interval(replicate_steps),
        seeds=len(replicate_steps),
        trial=trial,
        at_boundary=(),
        replicate_steps=tuple(replicate_steps),
        end_step=trial.last_step,
    )
