"""The process of a command: started without a shell, ended with all that it started."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from batchlab.errors import TrialError, shown

GRACE_SECONDS = 10.0
"""How long a program may take to end after SIGTERM, before it is killed."""

_PR_SET_PDEATHSIG = 1


class Child:
    """A running program; what it prints goes to the end of a file."""

    def __init__(self, command: Sequence[str], output: Path, variables: Mapping[str, str]) -> None:
        self.remark: str | None = None
        self._name = command[0]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **variables}
        libc = ctypes.CDLL(None) if sys.platform == "linux" else None
        with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644), "ab") as file:
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                    preexec_fn=lambda: _as_any_program(libc),
                )
            except OSError as error:
                raise TrialError(f"{shown(command[0])} cannot be run: {error.strerror}.") from error

    @property
    def group(self) -> int:
        """The number of the group that it and all that it starts are in."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it has ended; negative is a signal."""
        return self._process.returncode

    def wait(self, seconds: float) -> int | None:
        """Return its exit code, waiting for a while; None where it is still running."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def end(self) -> None:
        """End it where it is running: SIGTERM first, and SIGKILL where it does not listen; so what it has started."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            if self.wait(GRACE_SECONDS) is None:
                self.remark = f"{shown(self._name)} did not end within {GRACE_SECONDS:g} s of SIGTERM and was killed."
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _as_any_program(libc: ctypes.CDLL | None) -> None:
    """In the new process: hear the signals that a worker does not, and end when the worker has."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if libc is not None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
