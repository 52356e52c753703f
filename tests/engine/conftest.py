"""One thread for torch, the digits in memory, and studies to train on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.data import digits
from batchlab.data.base import Dataset
from batchlab.engine.torch_trainer import TorchTrainer


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None: ...


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    return digits.load()


@pytest.fixture(scope="session")
def trainer(dataset: Dataset) -> TorchTrainer:
    return TorchTrainer(dataset, device="cpu")


@pytest.fixture(scope="session")
def make_digits_study() -> Callable[..., Study]:
    """Return a function that makes a study of digits/fc_128/nesterov_momentum, or what it is told instead."""

    def make(
        batch_size: int = 16,
        max_steps: int = 200,
        model: Any = "fc_128",
        optimizer: str = "nesterov_momentum",
        schedule: Any = "constant",
        seed: int = 0,
        **evaluate: Any,
    ) -> Study:
        data = {
            "name": "test",
            "seed": seed,
            "workload": {"dataset": "digits", "model": model, "optimizer": optimizer, "schedule": schedule},
            "sweep": {
                "batch_sizes": [batch_size],
                "trials": 1,
                "max_steps": max_steps,
                "goal": "val/classification_error < 0.03",
                "evaluate": evaluate or {"every": 20},
            },
            "search_space": {"learning_rate": {"values": [0.1]}, "momentum": {"values": [0.9]}},
        }
        return Sweep.parse(data, "test").study(batch_size)

    return make
