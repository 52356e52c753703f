"""How the processes of a gang show that they live and get on, so that one that does not can be named."""

from __future__ import annotations

import threading
import time
from functools import cached_property

import numpy as np

from batchlab.engine.shared import SharedArray

BEAT_SECONDS = 0.2
"""Between two signs of life."""

START_SECONDS = 120.0
"""How long a process may take until its first sign of life, where less is allowed later: it imports a lot."""

AWAY_SECONDS = 5.0
"""After so long without a look we were away ourselves, stopped by Ctrl-Z say, and know nothing of that time."""

_BEATS, _EXCHANGES, _TURNS = range(3)


class Pulse:
    """Numbers in shared memory, for each rank of a gang. They can be handed to a process that is being started."""

    def __init__(self, size: int) -> None:
        self._shared = SharedArray(np.zeros((3, size), dtype=np.int64))

    @cached_property
    def _numbers(self) -> np.ndarray:
        return self._shared.array()

    def keep_beating(self, rank: int) -> None:
        """Show, as one of the ranks, that it lives, from now on and for as long as it does."""

        def beat() -> None:
            while True:
                self._numbers[_BEATS, rank] += 1
                time.sleep(BEAT_SECONDS)

        threading.Thread(target=beat, daemon=True).start()

    def begin_exchange(self, rank: int) -> None:
        """Show that a rank begins an exchange with the others."""
        self._numbers[_EXCHANGES, rank] += 1

    def set_together(self, is_begun: bool) -> None:
        """Show, as the first rank, that something begins which all do together, or has ended."""
        self._numbers[_TURNS, 0] += 1 + (is_begun == self.is_together)

    def beats(self) -> np.ndarray:
        """Return the signs of life of each rank so far."""
        return np.array(self._numbers[_BEATS])

    def progress(self) -> np.ndarray:
        """Return how many exchanges each rank has begun, and how often the first has begun or ended something."""
        return np.append(self._numbers[_EXCHANGES], self._numbers[_TURNS, 0])

    @property
    def is_together(self) -> bool:
        """Whether all are at something that they do together."""
        return bool(self._numbers[_TURNS, 0] % 2)

    def __getstate__(self) -> dict[str, object]:
        return {"_shared": self._shared}


class Watch:
    """Looks at a pulse now and then: who has stood still for longer than is allowed?"""

    def __init__(self, pulse: Pulse, seconds: float, now: float) -> None:
        self._pulse, self._seconds = pulse, seconds
        self._beats, self._beaten = pulse.beats(), np.full(len(pulse.beats()), now)
        self._progress, self._progressed = pulse.progress(), now
        self._looked = now

    def stalled(self, now: float) -> list[int]:
        """Return the ranks that show no life, else those that keep the others waiting; none as a rule.

        A rank keeps the others waiting where all have been at one thing together for the whole time, and nobody has
        begun an exchange: it has begun the fewest, or has been silent for half of the time.
        """
        self._look(now)
        silence = now - self._beaten
        silent = silence > np.where(self._beats == 0, max(self._seconds, START_SECONDS), self._seconds)
        if not silent.any() and now - self._progressed > self._seconds:
            *exchanges, _ = self._progress
            silent = silence > self._seconds / 2
            silent = silent if silent.any() else exchanges == np.min(exchanges)
        return [int(rank) for rank in np.flatnonzero(silent)]

    def _look(self, now: float) -> None:
        """Take note of what has changed since the last look; a time in which nobody looked is left out."""
        away = now - self._looked
        if away > AWAY_SECONDS:
            self._beaten += away
            self._progressed += away
        beats, progress = self._pulse.beats(), self._pulse.progress()
        self._beaten[beats != self._beats] = now
        if not self._pulse.is_together or (progress != self._progress).any():
            self._progressed = now
        self._beats, self._progress, self._looked = beats, progress, now
