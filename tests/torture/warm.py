"""Commands in processes that need not import anything first: copies of one that has.

The process that is copied runs `serve` as `python -m tests.torture.kill_at`, so that workers of a command import that
module as they do elsewhere. It runs one command at a time.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

VARIABLE = "BATCHLAB_TORTURE_WARM"
"""The number of the socket that requests come through."""


_started: list[subprocess.Popen[bytes]] = []
"""Processes that are copied; Python warns of one that nobody knows any more while it runs."""


class Copy:
    """A command that runs in a copy; as much of `subprocess.Popen` as is needed."""

    def __init__(self, arguments: Sequence[str], variables: Mapping[str, str], stderr: Path, warm: Connection) -> None:
        self._warm, self._stderr = warm, stderr
        self.returncode: int | None = None
        warm.send((list(arguments), dict(variables), str(stderr)))
        self.pid: int = warm.recv()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end, and return what it wrote."""
        self.wait(timeout)
        return "", self._stderr.read_text(errors="replace")

    def poll(self) -> int | None:
        """Return its exit code where it has ended."""
        return self.wait() if self.returncode is not None or self._warm.poll() else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, or raise `TimeoutExpired` as a `Popen` does."""
        if self.returncode is None:
            if not self._warm.poll(timeout):
                raise subprocess.TimeoutExpired("batchlab", timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(self._warm.recv())
        return self.returncode


@functools.cache
def warm_process(command: tuple[str, ...], variables: tuple[tuple[str, str], ...]) -> Connection:
    """Start the process that is copied; it ends when this one does."""
    here, there = socket.socketpair()
    process = subprocess.Popen(
        command,
        env={**dict(variables), VARIABLE: str(there.fileno())},
        pass_fds=[there.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    there.close()
    _started.append(process)
    return Connection(here.detach())


def serve(run: Callable[[], None]) -> None:
    """Import all of batchlab; then, for each request, `run` in a copy of this process until nobody asks any more."""
    requests = Connection(int(os.environ.pop(VARIABLE)))
    importlib.import_module("tests.torture.everything")
    gc.freeze()  # or every copy would go through all of it once more as it ends
    while True:
        try:
            arguments, variables, stderr = requests.recv()
        except EOFError:
            return
        process = os.fork()
        if process == 0:
            requests.close()
            _become(arguments, variables, stderr)
            run()
        requests.send(process)
        requests.send(os.waitpid(process, 0)[1])


def _become(arguments: list[str], variables: dict[str, str], stderr: str) -> None:
    """Be a command of a session of its own."""
    os.setsid()
    file = os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 2)
    os.close(file)
    os.environ.update(variables)
    sys.argv = ["batchlab", *arguments]
