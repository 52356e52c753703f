"""A study of a loop, and what a loop is told of a trial."""

from __future__ import annotations

import pytest

from batchlab.core.sweep import Sweep


@pytest.fixture
def make_study():
    """Return a function that makes a study of a command, or of what it is told instead."""

    def make(command="true {batch_size} {seed} {learning_rate}", *, space=("learning_rate",), engine=None, **workload):
        data = {
            "name": "own",
            "workload": {"command": command, **workload},
            "sweep": {"batch_sizes": [8], "trials": 2, "max_steps": 100, "goal": "val/loss < 0.1"},
            "search_space": {name: {"min": 0.01, "max": 1.0, "scale": "log"} for name in space},
            "engine": engine or {},
        }
        return Sweep.parse(data, "own.toml").study(8)

    return make
