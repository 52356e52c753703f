"""The lab's lock: one runner at a time. Readers need none.

Both the lab's folder and the file `lock` in it are locked: the file tells who holds the lab, and where the file is
removed the folder still refuses a second runner. The first one notices at its next write (`held`).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from batchlab.errors import VERIFY, LabError, LabLockedError, shown
from batchlab.files import read_bounded, storage_error
from batchlab.locked_folders import holding

MOST_BYTES = 10_000
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
"""What a file system answers that knows no locks."""


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock file and its folder, or raise LabLockedError with the holder's pid and host.

    The system lets go of them when the process ends, however it ends.
    """
    with ExitStack() as stack:
        try:
            _lock_folder(_opened(stack, path.parent, os.O_RDONLY | os.O_DIRECTORY))
            file = _opened(stack, path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK)
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise LabError(f"{path} is no regular file. {VERIFY}")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _sign(file)
        except BlockingIOError:
            raise LabLockedError(_refusal(path)) from None
        except OSError as error:
            raise _refused(path, error) from error
        stack.enter_context(holding(path.parent, path, file))
        yield


def _opened(stack: ExitStack, path: Path, flags: int) -> int:
    number = os.open(path, flags, 0o666)
    stack.callback(os.close, number)
    return number


def _lock_folder(number: int) -> None:
    """Lock a folder; where only files can be locked, as over NFS, the lock file must do."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.EISDIR, *_NO_LOCKS):
            raise


def _sign(number: int) -> None:
    os.ftruncate(number, 0)
    os.write(number, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())


def _refused(path: Path, error: OSError) -> Exception:
    if error.errno == errno.ELOOP:
        return LabError(f"{path} is a link, which no lab holds. {VERIFY}")
    if error.errno == errno.EISDIR:
        return LabError(f"{path} is no regular file. {VERIFY}")
    if error.errno in _NO_LOCKS:
        return LabError(
            f"The file system of {path.parent} knows no locks ({error.strerror}): nobody could tell who writes there. "
            "Put the lab on a disk of this machine."
        )
    return storage_error(path, error)


def _refusal(path: Path) -> str:
    who = "another process"
    with suppress(LabError, ValueError, KeyError, TypeError, RecursionError):
        holder = json.loads(read_bounded(path, MOST_BYTES))
        who = f"process {shown(holder['pid'])} on host {shown(holder['host'])}"
    return f"Lab {path.parent} is in use by {who}. Wait for it to end, stop it, or use another lab."
