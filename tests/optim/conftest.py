"""One thread for torch, so that bits do not depend on the machine."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None: ...
