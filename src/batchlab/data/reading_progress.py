"""What a person sees while something that takes long is made from dataset files: a line now and then on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from batchlab.core.duration import spell_seconds

SECONDS_BETWEEN_LINES = 10.0


class ReadingProgress:
    """Tells how far a reading is and how long the rest may take; short work says nothing.

    It is called with every number of bytes read, as `text_lines.Told` asks.
    """

    def __init__(self, what: str, num_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._num_bytes, self._clock = what, num_bytes, clock
        self._num_read = 0
        self._started = self._shown = clock()

    def __call__(self, num_bytes: int) -> None:
        """Take note of what was read; a line is due every ten seconds."""
        self._num_read += num_bytes
        now = self._clock()
        if self._num_read and now - self._shown >= SECONDS_BETWEEN_LINES:
            self._shown = now
            self._show(now - self._started)

    def _show(self, seconds: float) -> None:
        share = min(1.0, self._num_read / max(1, self._num_bytes))
        left = seconds / share - seconds
        print(f"{self._what}: {share:.0%}, about {spell_seconds(left)} left (done once, then kept)", file=sys.stderr)
