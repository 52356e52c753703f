"""The lab's lock: one runner at a time. Readers need none."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from batchlab.errors import LabLockedError


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock file, or raise LabLockedError with the holder's pid and host.

    The system lets go of it when the process ends, however it ends.
    """
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabLockedError(_refusal(path)) from None
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        file.flush()
        yield


def _refusal(path: Path) -> str:
    try:
        holder = json.loads(path.read_text())
        who = f"process {holder['pid']} on host {holder['host']}"
    except (OSError, ValueError, KeyError):
        who = "another process"
    return f"Lab {path.parent} is in use by {who}. Wait for it to end, stop it, or use another --lab."
