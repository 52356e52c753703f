"""How far a long reading is, on stderr."""

from __future__ import annotations

import sys
import time


class Shares:
    """Prints how far something is and how long it may take, every few seconds."""

    def __init__(self) -> None:
        self._started = self._shown = time.perf_counter()

    def __call__(self, share: float) -> None:
        """Take in the share that is done, from 0 to 1."""
        now = time.perf_counter()
        if now - self._shown > 2 and share > 0:
            from batchlab.core.duration import spell_seconds

            self._shown = now
            left = spell_seconds((now - self._started) * (1 - share) / share)
            print(f"{100 * share:.0f} % done, about {left} left", file=sys.stderr, flush=True)
