"""What the workers of one trial tell each other, so that N processes train as one does.

The global batch defines the training: every worker knows the whole batch, its noise and its masks, computes its share
of each microbatch, and adds what it found to what the others found. Weights, buffers and losses so are equal in all of
them, to the bit. `Alone`, the default, has nobody to talk to; `Distributed` talks through `torch.distributed`.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from batchlab.errors import SpecError, TrialError


class Sum(Protocol):
    """A sum over the workers that is under way."""

    def wait(self) -> Any:
        """Return once the tensor holds it."""
        ...


class Exchange(Protocol):
    """One of `size` workers of a trial, seen from itself. All of them call the same things in the same order."""

    @property
    def rank(self) -> int:
        """Which one it is, from 0."""
        ...

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    def sum(self, tensor: Tensor) -> Tensor:
        """Let a contiguous tensor hold the sum over all workers; return it."""
        ...

    def begin(self, tensor: Tensor) -> Sum:
        """Begin to sum a contiguous tensor; it must be left alone until that is done."""
        ...

    def agree(self, numbers: list[int]) -> list[int]:
        """Return what the first worker says."""
        ...


class Alone:
    """The only worker: what it has is the sum."""

    rank, size = 0, 1

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the tensor."""
        return tensor

    def begin(self, tensor: Tensor) -> Sum:
        """Return a sum that is there already."""
        return self

    def agree(self, numbers: list[int]) -> list[int]:
        """Return what it says itself."""
        return numbers

    def wait(self) -> None:
        """Return at once."""


ALONE = Alone()


class Distributed:
    """A worker in a process group of `torch.distributed`: the default one where none is given."""

    def __init__(self, group: dist.ProcessGroup | None = None, device: torch.device | str = "cpu") -> None:
        self._group, self._device = group, torch.device(device)
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def sum(self, tensor: Tensor) -> Tensor:
        """Sum a tensor now."""
        self.begin(tensor).wait()
        return tensor

    def begin(self, tensor: Tensor) -> Sum:
        """Begin to sum a tensor, beside whatever is computed meanwhile."""
        try:
            return _Sum(dist.all_reduce(tensor, group=self._group, async_op=True), self)
        except RuntimeError as error:
            raise self._lost(error) from error

    def agree(self, numbers: list[int]) -> list[int]:
        """Ask the first worker."""
        told = torch.tensor(numbers if self.rank == 0 else [0] * len(numbers), dtype=torch.int64, device=self._device)
        return [int(number) for number in self.sum(told).tolist()]

    def _lost(self, error: RuntimeError) -> TrialError:
        reason = str(error).strip().splitlines() or ["no reason was given"]
        return TrialError(f"Worker {self.rank} of 0 to {self.size - 1} of a trial has lost the others: {reason[0]}")


class _Sum:
    def __init__(self, work: Any, exchange: Distributed) -> None:
        self._work, self._exchange = work, exchange

    def wait(self) -> None:
        try:
            self._work.wait()
        except RuntimeError as error:
            raise self._exchange._lost(error) from error


class Share:
    """Which places of a microbatch are a worker's: whole ghosts, as equal in number as can be."""

    def __init__(self, exchange: Exchange, ghost_size: int = 1, *, needs_all: bool = False) -> None:
        self._rank, self._size, self._ghost_size = exchange.rank, exchange.size, ghost_size
        self._needs_all = needs_all  # at every microbatch

    def __call__(self, part: slice) -> slice:
        """Return the worker's places of those in `part`; none where there are fewer ghosts than workers.

        >>> Share(Alone(), ghost_size=4)(slice(8, 18))
        slice(8, 18, None)
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
                f"A batch of {self._told(batch_size)} cannot be shared by {self._size} workers: take fewer workers for"
                " a trial, or a larger batch."
            )
        smallest = batch_size % microbatch_size or min(microbatch_size, batch_size)
        if self._needs_all and self._num_ghosts(smallest) < self._size:
            raise SpecError(
                f"A batch of {batch_size} in microbatches of {microbatch_size} has one of {self._told(smallest)}, which"
                f" cannot be shared by {self._size} workers: take another engine.microbatch_size, or fewer workers."
            )

    def _num_ghosts(self, num_examples: int) -> int:
        return -(-num_examples // self._ghost_size)

    def _told(self, num_examples: int) -> str:
        ghosts = "" if self._ghost_size == 1 else f" (ghosts of {self._ghost_size})"
        return f"{num_examples} example{'' if num_examples == 1 else 's'}{ghosts}"
