"""Fixtures shared by all tests; torch and BLAS run on one thread so that bits do not depend on the machine's load."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path

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

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real datasets beside the checkout; tests that need it are skipped where it is absent."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real datasets (../shared/data) are not beside this checkout")
    return folder


SIZES = tuple(2**k for k in range(12))


@pytest.fixture
def make_summary() -> Callable[..., WorkloadSummary]:
    """Build the summary of a workload as a lab might leave it: S = 40 + 4100 / B, twelve batch sizes.

    Trials lie a little above the curve; `unreached` batch sizes never met the goal, `is_open` ones have one success.
    """

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
