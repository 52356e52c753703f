from __future__ import annotations

import shutil

import pytest

from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab


@pytest.fixture(scope="module")
def _lab(tmp_path_factory, make_nqm):
    folder = tmp_path_factory.mktemp("nqm")
    run_sweep(make_nqm({"sweep.max_steps": 60}), folder / "lab", num_workers=1)
    return folder / "lab"


@pytest.fixture
def lab(_lab, tmp_path):
    """A stored sweep of three studies, a copy for each test."""
    return Lab.open(shutil.copytree(_lab, tmp_path / "lab"))
