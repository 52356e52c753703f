"""What the command line writes to: outputs that may be closed, full, or unable to spell what is written."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from batchlab.errors import plain

MOST_LINE = 4_000
"""Characters of one line on stderr."""


def warn(sentence: str) -> None:
    """Print one line on stderr."""
    line = plain(sentence)
    print(f"batchlab: {line if len(line) <= MOST_LINE else f'{line[:MOST_LINE]}...'}", file=sys.stderr)


@contextmanager
def prepared() -> Iterator[None]:
    """Have outputs that take everything: what was closed goes nowhere, and what says nothing worth failing for cannot.

    A run must not end because nobody can see how far it is, and no file of a lab may be opened as number 1 or 2.
    """
    _open_closed()
    before = sys.stdout, sys.stderr
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    with open(os.devnull, "w") as nowhere:
        sys.stdout, sys.stderr = cast("Any", (_Plain(sys.stdout or nowhere), _Patient(sys.stderr or nowhere)))
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


def drop(number: int) -> None:
    """Let what could not be printed to an output go nowhere, so that the end of the process does not try again."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def _open_closed() -> None:
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


class _Plain:
    """A stream on which nothing from a lab or a file steers the terminal: see `errors.plain`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write lines and tabs as they are, and all else that is not printable escaped."""
        is_plain = text.isprintable()
        return int(self._stream.write(text if is_plain else "".join(map(_escaped, re.split("([\n\t])", text)))))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _escaped(part: str) -> str:
    return part if part in ("\n", "\t") else plain(part)


class _Patient:
    """A stream whose writes never fail: what it cannot take is lost."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write what can be written."""
        try:
            return int(self._stream.write(text))
        except (OSError, ValueError):
            self._give_up()
            return len(text)

    def flush(self) -> None:
        """Bring out what can be brought out."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._give_up()

    def _give_up(self) -> None:
        with suppress(OSError, ValueError):
            drop(self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
