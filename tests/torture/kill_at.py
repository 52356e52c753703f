"""batchlab in a process in which one operation on files goes wrong: it is killed there, or the disk refuses.

Started as `python -m tests.torture.kill_at ARGUMENTS`, with the variable below, or copied from a process that `warm`
keeps; its workers import this module too.
Only what changes something in the lab is counted: opening for writing, writing, syncing, renaming, removing, making
folders. A write that is killed has written half.
"""

from __future__ import annotations

import builtins
import errno
import io
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

VARIABLE = "BATCHLAB_TORTURE"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_EVENTS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate")


@dataclass(frozen=True)
class Orders:
    """What is to go wrong, where and when."""

    folder: str
    """Only operations on what lies in it are counted."""

    log: str
    """A file that gets a byte for each operation, one for each sort of process."""

    who: str = "main"
    """`main` or `worker`."""

    at: int = 0
    """The number of the operation; 0 for none."""

    how: str = "kill"
    """`kill` ends the process, `kill all` its workers too; `ENOSPC` and `EIO` are what the disk says."""

    def variables(self) -> dict[str, str]:
        """Return them as a process reads them."""
        return {VARIABLE: json.dumps(self.__dict__)}


class _Counter:
    def __init__(self, orders: Orders, who: str) -> None:
        self._orders, self._is_full, self.who = orders, False, who
        self._log = os.open(f"{orders.log}.{self.who}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.folder, self._number = orders.folder, 0

    def count(self, event: str, half: Callable[[], Any] = lambda: None) -> None:
        """Take in one more operation; it does not come back where this is the one."""
        self._number += 1
        _write(self._log, b".")
        if self._orders.who != self.who:
            return
        if self._number == self._orders.at:
            self._strike(half)
        if self._is_full and event in ("open", "write", "os.mkdir"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _strike(self, half: Callable[[], Any]) -> None:
        if self._orders.how.startswith("kill"):
            half()
            if self._orders.how == "kill all":
                os.killpg(0, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        self._is_full = self._orders.how == "ENOSPC"
        number = getattr(errno, self._orders.how)
        raise OSError(number, os.strerror(number))


_write, _fsync, _open = os.write, os.fsync, io.open


def install(orders: Orders, who: str) -> None:
    """Watch every operation of this process from now on."""
    counter = _Counter(orders, who)
    with open(f"{orders.log}.processes", "a") as log:
        log.write(f"{os.getpid()}\n")
    if who == "main":  # so that semaphores tell whose they are
        multiprocessing.current_process()._config["semprefix"] = f"/mp-{os.getpid()}"  # type: ignore[attr-defined]
    sys.addaudithook(partial(_heard, counter))
    os.fsync = partial(_counted_fsync, counter)
    os.write = partial(_counted_write, counter)
    io.open = builtins.open = partial(_counted_open, counter)


def _heard(counter: _Counter, event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EVENTS or (event == "open" and not _is_writing(arguments)):
        return
    if _is_inside(counter, arguments[0]) or _is_in_open_folder(counter, event, arguments):
        counter.count(event)


def _is_in_open_folder(counter: _Counter, event: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether a name is one in a folder of the lab that is open, as when a tree is removed."""
    folder = arguments[-1] if event in ("os.remove", "os.rmdir", "os.mkdir", "os.rename") else -1
    return isinstance(folder, int) and folder != -1 and _is_inside(counter, _path_of(folder))


def _is_writing(arguments: tuple[Any, ...]) -> bool:
    return isinstance(arguments[2], int) and bool(arguments[2] & _WRITING)


def _is_inside(counter: _Counter, path: Any) -> bool:
    return isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(counter.folder)


def _path_of(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


def _counted_fsync(counter: _Counter, descriptor: int) -> None:
    if _is_inside(counter, _path_of(descriptor)):
        counter.count("fsync")
    _fsync(descriptor)


def _counted_write(counter: _Counter, descriptor: int, data: Any) -> int:
    if _is_inside(counter, _path_of(descriptor)):
        counter.count("write", lambda: _write(descriptor, bytes(data)[: len(data) // 2]))
    return _write(descriptor, data)


def _counted_open(counter: _Counter, file: Any, mode: str = "r", *others: Any, **options: Any) -> Any:
    if mode != "wb" or not _is_inside(counter, file):
        return _open(file, mode, *others, **options)
    return io.BufferedWriter(_CountedFile(counter, file))


class _CountedFile(io.FileIO):
    def __init__(self, counter: _Counter, path: Any) -> None:
        super().__init__(path, "wb")
        self._counter = counter

    def write(self, data: Any) -> int:
        content = bytes(data)
        self._counter.count("write", lambda: super(_CountedFile, self).write(content[: len(content) // 2]))
        return super().write(content)


def processes(log: Path) -> list[int]:
    """Return the numbers of all processes that were started."""
    path = Path(f"{log}.processes")
    return [int(number) for number in path.read_text().split()] if path.exists() else []


def operations(log: Path, who: str) -> int:
    """Return how many operations were counted in the processes of one sort."""
    path = Path(f"{log}.{who}")
    return path.stat().st_size if path.exists() else 0


def install_ordered(who: str) -> None:
    """Watch every operation of this process, where the environment tells so."""
    if VARIABLE in os.environ:
        install(Orders(**json.loads(os.environ[VARIABLE])), who)


def main() -> None:
    """Be batchlab."""
    from batchlab.cli import main as batchlab_main

    install_ordered("main")
    batchlab_main()


if __name__ == "__main__":
    from tests.torture import warm

    if warm.VARIABLE in os.environ:
        warm.serve(main)
    else:
        main()
else:
    install_ordered("worker")
