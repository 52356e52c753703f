"""The lab's lock: one runner at a time. Readers need none."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from batchlab.errors import LabLockedError
from batchlab.files import storage_error


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock file, or raise LabLockedError with the holder's pid and host.

    The system lets go of it when the process ends, however it ends.
    """
    with _take(path):
        yield


def _take(path: Path) -> IO[str]:
    """Return the lock file, held and signed; closing it lets go of it."""
    try:
        file = path.open("a+")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        file.flush()
    except BlockingIOError:
        file.close()
        raise LabLockedError(_refusal(path)) from None
    except OSError as error:
        raise storage_error(path, error) from error
    return file


def _refusal(path: Path) -> str:
    try:
        holder = json.loads(path.read_text())
        who = f"process {holder['pid']} on host {holder['host']}"
    except (OSError, ValueError, KeyError):
        who = "another process"
    return f"Lab {path.parent} is in use by {who}. Wait for it to end, stop it, or use another --lab."
