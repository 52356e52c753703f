"""Worker processes that do not outlive the one that started them."""

from __future__ import annotations

import multiprocessing
import os
import threading
from multiprocessing.connection import wait


def die_with_parent() -> None:
    """Let this process end when its parent has, even if that was killed and could tell nobody."""
    threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
