"""What became of other processes."""

from __future__ import annotations

import os
import select

PATIENCE = 60.0


def has_ended(pid: int) -> bool:
    """Return whether a process ends within our patience; no polling: the kernel tells."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], PATIENCE)[0])
    finally:
        os.close(descriptor)
