"""What the workers of one trial tell each other, so that N processes train as one does.

The global batch defines the training: every worker knows the whole batch, its noise and its masks, computes its share
of each microbatch, and adds what it found to what the others found. Weights, buffers and losses so are equal in all of
them, to the bit. `Alone`, the default, has nobody to talk to; `Distributed` talks through `torch.distributed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from batchlab.errors import LostOthersError


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
    """A worker in a process group of `torch.distributed`: the default one where none is given.

    `begun` is called where a sum begins.
    """

    def __init__(
        self,
        group: dist.ProcessGroup | None = None,
        device: torch.device | str = "cpu",
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        self._group, self._device, self._begun = group, torch.device(device), begun
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def sum(self, tensor: Tensor) -> Tensor:
        """Sum a tensor now."""
        self.begin(tensor).wait()
        return tensor

    def begin(self, tensor: Tensor) -> Sum:
        """Begin to sum a tensor, beside whatever is computed meanwhile."""
        self._begun()
        try:
            return _Sum(dist.all_reduce(tensor, group=self._group, async_op=True), self)
        except RuntimeError as error:
            raise self._lost(error) from error

    def agree(self, numbers: list[int]) -> list[int]:
        """Ask the first worker."""
        told = torch.tensor(numbers if self.rank == 0 else [0] * len(numbers), dtype=torch.int64, device=self._device)
        return [int(number) for number in self.sum(told).tolist()]

    def _lost(self, error: RuntimeError) -> LostOthersError:
        reason = str(error).strip().splitlines() or ["no reason was given"]
        return LostOthersError(
            f"Worker {self.rank} of 0 to {self.size - 1} of a trial has lost the others: {reason[0]}"
        )


class _Sum:
    def __init__(self, work: Any, exchange: Distributed) -> None:
        self._work, self._exchange = work, exchange

    def wait(self) -> None:
        try:
            self._work.wait()
        except RuntimeError as error:
            raise self._exchange._lost(error) from error
