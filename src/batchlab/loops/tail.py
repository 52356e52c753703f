"""The lines of a file that somebody else is writing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

LONGEST = 1 << 20
"""Bytes of a line; a longer one is no report."""


class Tail:
    """Reads on from where it was; a file that was begun anew is read from its start."""

    def __init__(self, path: Path, offset: int) -> None:
        self._path, self._offset = path, offset

    def lines(self, *, is_last: bool = False) -> Iterator[tuple[str, int]]:
        """Yield every line that is complete, and where it ends; with `is_last` one without a newline, too."""
        try:
            file = self._path.open("rb")
        except OSError:  # not there yet
            return
        with file:
            if file.seek(0, 2) < self._offset:
                self._offset = 0
            file.seek(self._offset)
            while line := file.readline(LONGEST):
                if not line.endswith(b"\n") and len(line) < LONGEST and not is_last:
                    return
                self._offset += len(line)
                yield line.decode(errors="replace"), self._offset
