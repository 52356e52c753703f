"""Labs to look at: the kept sample of this format, and one that was just run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from batchlab.run.runner import run_sweep

SAMPLES = Path(__file__).parents[1] / "store" / "labs"


@pytest.fixture
def sample(tmp_path):
    """A lab with a finished and confirmed sweep, and one in training."""
    return Path(shutil.copytree(SAMPLES / "format-3", tmp_path / "sample"))


@pytest.fixture
def nqm_sweep(make_nqm):
    return make_nqm({"sweep.max_steps": 60, "sweep.batch_sizes": [1, 16]})


@pytest.fixture
def nqm(nqm_sweep, tmp_path):
    """A lab with one finished sweep, that `run` completes in no time."""
    run_sweep(nqm_sweep, tmp_path / "nqm", num_workers=1)
    return tmp_path / "nqm"
