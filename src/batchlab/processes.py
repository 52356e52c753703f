"""Other processes: those of ours that must not outlive us, and those that may be gone."""

from __future__ import annotations

import multiprocessing
import os
import threading
from multiprocessing.connection import wait


def die_with_parent() -> None:
    """Let this process end when its parent has, even if that was killed and could tell nobody."""
    threading.Thread(target=_watch_parent, daemon=True).start()


def is_running(process: int) -> bool:
    """Return whether a process of this number lives on this machine."""
    try:
        os.kill(process, 0)
    except PermissionError:  # somebody else's
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
