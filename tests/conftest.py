"""Fixtures shared by all tests; torch and BLAS run on one thread so that bits do not depend on the machine's load."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real datasets beside the checkout; tests that need it are skipped where it is absent."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real datasets (../shared/data) are not beside this checkout")
    return folder
