"""Which part of a batch each of several workers of a trial computes. Nothing here needs PyTorch."""

from __future__ import annotations

from batchlab.errors import SpecError

OBSERVED_BY_ONE = "Observers see the gradients of one worker: train without them, or take one for a trial."


class Share:
    """Which places of a microbatch are a worker's: whole ghosts, as equal in number as can be."""

    def __init__(self, rank: int, size: int, ghost_size: int = 1, *, needs_all: bool = False) -> None:
        self._rank, self._size, self._ghost_size = rank, size, ghost_size
        self._needs_all = needs_all  # at every microbatch

    def __call__(self, part: slice) -> slice:
        """Return the worker's places of those in `part`; none where there are fewer ghosts than workers.

        >>> [Share(rank, 2, ghost_size=4)(slice(8, 18)) for rank in (0, 1)]
        [slice(8, 12, None), slice(12, 18, None)]
        """
        ghosts = self._num_ghosts(part.stop - part.start)
        first, last = (ghosts * rank // self._size for rank in (self._rank, self._rank + 1))
        return slice(part.start + self._ghost_size * first, min(part.start + self._ghost_size * last, part.stop))

    @property
    def fewest(self) -> int:
        """The examples that give every worker a whole ghost."""
        return self._size * self._ghost_size

    def check(self, batch_size: int, microbatch_size: int) -> None:
        """Raise SpecError where a batch has too few ghosts for the workers; or a microbatch, if each needs all."""
        if self._num_ghosts(batch_size) < self._size:
            raise SpecError(
                f"A batch of {self._told(batch_size)} cannot be shared by {self._size} workers: take fewer"
                " engine.workers_per_trial, or a larger batch."
            )
        smallest = batch_size % microbatch_size or min(microbatch_size, batch_size)
        if self._needs_all and self._num_ghosts(smallest) < self._size:
            raise SpecError(
                f"A batch of {batch_size} in microbatches of {microbatch_size} has one of {self._told(smallest)}, which"
                f" cannot be shared by {self._size} workers: take another engine.microbatch_size, or fewer"
                " engine.workers_per_trial."
            )

    def _num_ghosts(self, num_examples: int) -> int:
        return -(-num_examples // self._ghost_size)

    def _told(self, num_examples: int) -> str:
        ghosts = "" if self._ghost_size == 1 else f" (ghosts of {self._ghost_size})"
        return f"{num_examples} example{'' if num_examples == 1 else 's'}{ghosts}"
