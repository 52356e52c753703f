"""Links that are really made, where this system and this user can."""

from __future__ import annotations

import pytest

from batchlab.errors import InputError
from batchlab.link.hub import joined
from batchlab.link.link import Link


@pytest.fixture(scope="session")
def can_link():
    """Skip a test where no link can be made, with the reason."""
    try:
        with joined(Link(bandwidth=1e7), 2):
            pass
    except InputError as error:
        pytest.skip(str(error))
