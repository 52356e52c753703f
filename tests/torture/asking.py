"""Asking batchlab a question: in this process, or as a user does, in one of its own with limits."""

from __future__ import annotations

import contextlib
import functools
import io
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import typer.main

from batchlab import cli
from batchlab.cli import endings

REPOSITORY = Path(__file__).parents[2]
MOST_SECONDS = 60
MOST_BYTES = 6 << 30
"""Of addresses, where torch alone takes three; what is really used is looked at by `memory`."""

_PROGRESS = re.compile(r"batch size +[0-9]|([a-z]+: )?[0-9]+ % done, about ")
_command = functools.cache(typer.main.get_command)
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["tests.torture.everything"])


@dataclass(frozen=True)
class Answer:
    """What a command gave back."""

    code: int | None
    """Its exit code; None where it ended with a traceback, or not in time."""

    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What was said on stderr, but for how far something is."""
        return [line for line in self.err.splitlines() if not _PROGRESS.match(line)]


def ask(*arguments: object) -> Answer:
    """Return what the command line answers, asked in this process.

    The disk is not waited for, and workers are copies of a process that has imported everything.
    """
    out, err = io.StringIO(), io.StringIO()
    changes = (
        mock.patch.object(sys, "argv", ["batchlab", *map(str, arguments)]),
        mock.patch.object(typer.main, "get_command", _command),
        mock.patch.object(os, "fsync", return_value=None),
        mock.patch.object(multiprocessing, "get_context", return_value=_forks),
        mock.patch.object(endings, "drop", return_value=None),  # or this process could tell nothing any more
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(action="error"),
    )
    with contextlib.ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            stack.callback(signal.signal, number, signal.getsignal(number))
        for change in changes:
            stack.enter_context(change)
        code = _code_of_main()
    told = err.getvalue() + code[1]
    return Answer(None if is_unexpected(told) else code[0], out.getvalue(), told)


def is_unexpected(err: str) -> bool:
    """Return whether a command met an error that nobody wrote a sentence for, shown as a traceback or as one line."""
    return "Traceback (most recent call last)" in err or "This should not happen (" in err


def _code_of_main() -> tuple[int | None, str]:
    try:
        cli.main()
    except SystemExit as end:
        return (end.code if isinstance(end.code, int) else 0), ""
    except BaseException:
        return None, traceback.format_exc()
    return None, "main() came back"


def ask_outside(*arguments: object, cwd: Path | None = None, most_seconds: float = MOST_SECONDS) -> Answer:
    """Return what `batchlab` answers in a process of its own, within a time and a memory."""
    command = [sys.executable, "-W", "error", "-m", "batchlab", *map(str, arguments)]
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment(),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=most_seconds,
            preexec_fn=_limit_memory,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(None, "", f"no answer within {most_seconds} seconds")
    code = None if is_unexpected(done.stderr) or done.returncode < 0 else done.returncode
    return Answer(code, done.stdout, done.stderr)


def environment() -> dict[str, str]:
    """Return the variables of a process that imports what this one does, on one thread."""
    path = os.pathsep.join([str(REPOSITORY), *(each for each in sys.path if each)])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
