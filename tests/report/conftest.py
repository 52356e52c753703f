"""A workload as a lab might leave it: S = 40 + 4100 / B, twelve batch sizes, trials a little above the curve."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import pytest

from batchlab.analysis import (
    StepsToResult,
    WorkloadSummary,
    fit_critical_batch,
    measure_scaling,
    minimum_interval,
    tuned_points,
)
from batchlab.core.goal import Goal
from batchlab.core.trial import Status, Trial

SIZES = tuple(2**k for k in range(12))


@pytest.fixture
def make_summary() -> Callable[..., WorkloadSummary]:
    """Build the summary; `unreached` batch sizes never met the goal, `is_open` ones have one success only."""

    def make(
        sizes: Collection[int] = SIZES,
        unreached: Collection[int] = (),
        is_open: Collection[int] = (),
        momentum: float | None = 0.9,
        at_boundary: tuple[str, ...] = (),
        workload: str = "digits/fc_128/nesterov_momentum",
        num_trials: int = 32,
    ) -> WorkloadSummary:
        rng = np.random.default_rng(0)
        rows = []
        for size in sizes:
            excess = 1 + np.sort(rng.exponential(size=num_trials))
            steps = tuple(int(step) for step in np.ceil((40 + 4100 / size) * excess))
            steps = () if size in unreached else steps[:1] if size in is_open else steps
            point = {"learning_rate": 0.01 * size**0.5, "momentum": momentum}
            metaparameters = {name: value for name, value in point.items() if value is not None}
            trial = Trial(trial_id=5, status=Status.COMPLETE, metaparameters=metaparameters, last_step=20_000)
            rows.append(
                StepsToResult(
                    batch_size=size,
                    steps=steps[0] if steps else None,
                    trial=trial if steps else None,
                    interval=minimum_interval(steps, num_trials),
                    at_boundary=at_boundary if steps else (),
                    num_trials=num_trials,
                    reached_steps=steps,
                    end_step=20_000,
                    complete=num_trials,
                    infeasible=3,
                    incomplete=1,
                )
            )
        return WorkloadSummary(
            workload=workload,
            goal=Goal.read("val/classification_error < 0.03"),
            rows=tuple(rows),
            scaling=measure_scaling(rows),
            fit=fit_critical_batch(rows, num_resamples=20),
            tuned=tuned_points(rows),
        )

    return make
