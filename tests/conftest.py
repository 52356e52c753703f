"""Fixtures shared by all tests; torch and BLAS run on one thread so that bits do not depend on the machine's load."""

from __future__ import annotations

import copy
import os
import signal
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchlab.analysis import (
    ConfirmedSteps,
    StepsToResult,
    WorkloadSummary,
    best_of,
    choose_headline,
    find_regimes,
    fit_critical_batch,
    median_interval,
    tuned_points,
)
from batchlab.core.goal import Goal
from batchlab.core.protocol import Protocol
from batchlab.core.sweep import Sweep
from batchlab.core.trial import Status, Trial

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"


@pytest.fixture
def one_thread() -> Iterator[None]:
    """One thread for torch, so that bits do not depend on the machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def heard_signals() -> Iterator[None]:
    """Signals as a terminal leaves them, here and in processes that are started: under nohup they would be ignored."""
    handlers = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real datasets beside the checkout; tests that need it are skipped where it is absent."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real datasets (../shared/data) are not beside this checkout")
    return folder


FULL = Protocol(kind="full", max_steps=20_000)
SIZES = tuple(2**k for k in range(12))


@pytest.fixture
def make_summary() -> Callable[..., WorkloadSummary]:
    """Build the summary of a workload as a lab might leave it: S = 40 + 4100 / B, twelve batch sizes.

    Trials lie a little above the curve; `unreached` batch sizes never met the goal, `is_open` ones have one success.
    `seeds` replicates of the best point confirm it, or none.
    """

    def make(
        sizes: Collection[int] = SIZES,
        unreached: Collection[int] = (),
        is_open: Collection[int] = (),
        momentum: float | None = 0.9,
        at_boundary: tuple[str, ...] = (),
        workload: str = "digits/fc_128/nesterov_momentum",
        num_trials: int = 32,
        seeds: int = 0,
        protocol: Protocol = FULL,
        stuck: int = 0,
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
                    at_boundary=at_boundary if steps else (),
                    num_trials=num_trials,
                    reached_steps=steps,
                    end_step=20_000,
                    complete=num_trials,
                    infeasible=3,
                    incomplete=1,
                    stuck=stuck,
                    best_of=best_of(steps, num_trials),
                    confirmed=_confirmed(trial, 40 + 4100 / size, seeds, rng, at_boundary) if steps and seeds else None,
                    protocol=protocol,
                    top_trials=_neighbours(trial) if len(steps) >= 3 else (),
                )
            )
        headline, fit = choose_headline(rows), fit_critical_batch(rows)
        return WorkloadSummary(
            workload=workload,
            goal=Goal.read("val/classification_error < 0.03"),
            protocol=protocol,
            headline=headline,
            rows=tuple(rows),
            fit=fit,
            regimes=find_regimes(rows, fit),
            tuned=tuned_points(rows, headline),
        )

    return make


def _neighbours(trial: Trial) -> tuple[Trial, ...]:
    point = trial.metaparameters
    rates = [factor * point["learning_rate"] for factor in (1.0, 0.7, 1.6)]
    return tuple(trial.model_copy(update={"metaparameters": {**point, "learning_rate": rate}}) for rate in rates)


def _confirmed(
    trial: Trial, steps: float, seeds: int, rng: np.random.Generator, at_boundary: tuple[str, ...]
) -> ConfirmedSteps:
    replicates = tuple(int(step) for step in np.ceil(steps * np.exp(0.05 * rng.standard_normal(seeds))))
    return ConfirmedSteps(
        steps=float(np.median(replicates)),
        interval=median_interval(replicates),
        seeds=seeds,
        trial=trial,
        at_boundary=at_boundary,
        replicate_steps=replicates,
        end_step=20_000,
    )


NQM: dict[str, Any] = {
    "name": "nqm",
    "workload": {"dataset": {"name": "nqm", "dimension": 10}, "model": "quadratic", "optimizer": "sgd"},
    "sweep": {
        "batch_sizes": [1, 16, 256],
        "trials": 12,
        "max_steps": 400,
        "goal": "val/risk <= 0.1",
        "sampler": "grid",
        "evaluate": {"every": 1},
    },
    "search_space": {"learning_rate": {"min": 0.01, "max": 1.999, "scale": "log", "points": 12}},
}

DIGITS: dict[str, Any] = {
    "name": "digits",
    "workload": {"dataset": "digits", "model": "fc_128", "optimizer": "nesterov_momentum"},
    "sweep": {
        "batch_sizes": [16, 64],
        "trials": 6,
        "max_steps": 60,
        "goal": "val/classification_error < 0.2",
        "evaluate": {"growth": 1.2},
    },
    "search_space": {
        "learning_rate": {"min": 1e-3, "max": 10.0, "scale": "log"},
        "momentum": {"min": 0.0, "max": 0.999, "scale": "reverse_log"},
    },
    "engine": {"pack_size": 4},
}

SCRIPTED: dict[str, Any] = {
    "name": "scripted",
    "workload": {"dataset": "stage", "model": "actor", "optimizer": "script"},
    "sweep": {
        "batch_sizes": [8],
        "trials": 4,
        "max_steps": 100,
        "goal": "val/loss < 0.5",
        "race_factor": 1.5,
        "evaluate": {"every": 10},
    },
    "search_space": {"learning_rate": {"min": 0.1, "max": 1.0}},
    "engine": {"pack_size": 2},
}


def _maker(spec: dict[str, Any]) -> Callable[..., Sweep]:
    def make(changes: Mapping[str, Any] | None = None) -> Sweep:
        data = copy.deepcopy(spec)
        for place, value in (changes or {}).items():
            *tables, key = place.split(".")
            table = data
            for name in tables:
                table = table.setdefault(name, {})
            table[key] = value
        return Sweep.parse(data, "test.toml")

    return make


@pytest.fixture(scope="session")
def make_nqm() -> Callable[..., Sweep]:
    """Return a function that makes a sweep of the noisy quadratic model, with values set by their dotted places."""
    return _maker(NQM)


@pytest.fixture(scope="session")
def make_digits() -> Callable[..., Sweep]:
    """Return a function that makes a short sweep of digits."""
    return _maker(DIGITS)


@pytest.fixture(scope="session")
def make_scripted() -> Callable[..., Sweep]:
    """Return a function that makes a sweep for `ScriptedTrainer`."""
    return _maker(SCRIPTED)
