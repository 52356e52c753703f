"""What the processes of a run share without waiting: the ends of its races, and whether all shall stop.

What a worker has written stays there when it dies, and whoever takes its place goes on writing there.

Each worker has a number of its own for every study and writes to no other, so that none needs a lock: a lock has a
name in the system, which a kill of all processes would leave behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from batchlab.engine.shared import SharedArray

FAR = 1 << 62
"""No end is known yet."""

_STOP, _PROGRAMS = -1, -2
"""Rows below those of the studies."""


class Noticeboard:
    """Numbers in shared memory. They can be handed to a process that is being started."""

    def __init__(self, batch_sizes: Sequence[int], num_workers: int) -> None:
        self._sizes = list(batch_sizes)
        self._shared = SharedArray(np.full((len(self._sizes) + 2, num_workers), FAR, dtype=np.int64))
        self._numbers[_PROGRAMS] = 0

    @cached_property
    def _numbers(self) -> np.ndarray:
        return self._shared.array()

    def end_step(self, batch_size: int) -> int:
        """Return the nearest end of a study's race that any worker has written."""
        return int(self._numbers[self._sizes.index(batch_size)].min())

    def lower(self, batch_size: int, worker: int, end_step: int) -> None:
        """Write, as one of the workers, an end of a study's race; a nearer one of its own stays."""
        row = self._numbers[self._sizes.index(batch_size)]
        row[worker] = min(int(row[worker]), end_step)

    def stop(self) -> None:
        """Ask all workers to stop."""
        self._numbers[_STOP] = 0

    def is_stopping(self) -> bool:
        """Return whether the workers are to stop."""
        return bool(self._numbers[_STOP, 0] == 0)

    def note_program(self, worker: int, group: int) -> None:
        """Write, as one of the workers, which group of processes it has started; 0 once it has ended."""
        self._numbers[_PROGRAMS, worker] = group

    def take_program(self, worker: int) -> int:
        """Return which group of processes a worker had started when it died, 0 for none, and forget it."""
        group = int(self._numbers[_PROGRAMS, worker])
        self._numbers[_PROGRAMS, worker] = 0
        return group

    def __getstate__(self) -> dict[str, object]:
        return {"_sizes": self._sizes, "_shared": self._shared}
