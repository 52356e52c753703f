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

_BEATS, _EXCHANGES, _TOGETHER = range(3)


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
        """Show, as the first rank, whether all are at something that they do together."""
        self._numbers[_TOGETHER, 0] = is_begun

    def beats(self) -> np.ndarray:
        """Return the signs of life of each rank so far."""
        return np.array(self._numbers[_BEATS])

    def exchanges(self) -> np.ndarray:
        """Return how many exchanges each rank has begun."""
        return np.array(self._numbers[_EXCHANGES])

    @property
    def is_together(self) -> bool:
        """Whether all are at something that they do together."""
        return bool(self._numbers[_TOGETHER, 0])

    def __getstate__(self) -> dict[str, object]:
        return {"_shared": self._shared}


class Watch:
    """Looks at a pulse now and then: who has stood still for longer than is allowed?"""

    def __init__(self, pulse: Pulse, seconds: float, now: float) -> None:
        self._pulse, self._seconds = pulse, seconds
        self._beats, self._beaten = pulse.beats(), np.full(len(pulse.beats()), now)
        self._exchanges, self._exchanged = pulse.exchanges(), now
        self._looked = now

    def stalled(self, now: float) -> list[int]:
        """Return the ranks that show no life, else those that keep the others waiting; none as a rule.

        A rank keeps the others waiting where all are at something together, no exchange was begun for the whole time,
        and it has begun the fewest.
        """
        self._forgive(now)
        beats, exchanges = self._pulse.beats(), self._pulse.exchanges()
        self._beaten[beats != self._beats] = now
        if not self._pulse.is_together or (exchanges != self._exchanges).any():
            self._exchanged = now
        self._beats, self._exchanges, self._looked = beats, exchanges, now
        allowed = np.where(beats == 0, max(self._seconds, START_SECONDS), self._seconds)
        silent = np.flatnonzero(now - self._beaten > allowed)
        if len(silent) or now - self._exchanged <= self._seconds:
            return [int(rank) for rank in silent]
        return [int(rank) for rank in np.flatnonzero(exchanges == exchanges.min())]

    def _forgive(self, now: float) -> None:
        """Leave out a time in which nobody looked."""
        away = now - self._looked
        if away > AWAY_SECONDS:
            self._beaten += away
            self._exchanged += away
