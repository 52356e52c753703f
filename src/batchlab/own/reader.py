"""Reading some examples of a user's Dataset: what is random in them follows from seeds, and what fails is one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import default_collate

from batchlab.core.seeds import Stream, generator
from batchlab.engine.global_random import fork_rng, seed_processor
from batchlab.errors import TrainerError, shown
from batchlab.own.raised import raised

Collate = Callable[[list[Any]], Any]
"""From a list of items to a batch, as torch's DataLoader takes it."""

# The last key of a stream of Stream.NOISE, beside `engine.global_random.TORCH`. Stored results depend on them.
TRAINED = 2
EVALUATED = 3


def seeds_at(start: int, number: int, seed: int, trial_id: int, purpose: int) -> np.ndarray:
    """Return the seeds of the examples at some places of a trial's order, of all epochs, whatever its batches are.

    >>> (seeds_at(0, 5, 0, 7, TRAINED)[2:] == seeds_at(2, 3, 0, 7, TRAINED)).all()
    np.True_
    """
    bits = generator(seed, Stream.NOISE, trial_id, 0, purpose).bit_generator
    assert isinstance(bits, np.random.PCG64)
    return bits.advance(start).random_raw(number)


@dataclass(frozen=True)
class Request:
    """Some examples by their numbers, and what seeds the random numbers of each."""

    numbers: Sequence[int]
    seeds: Sequence[int]


@dataclass(frozen=True)
class Failure:
    """Why a request could not be met, in one line: exceptions of other processes come with pages."""

    reason: str


class Reader(Protocol):
    """Reads a batch."""

    def __getitem__(self, request: Request) -> Any | Failure: ...


class ItemReader:
    """Reads the items of a Dataset one by one and makes a batch of them.

    Before each item the generators of Python, NumPy and PyTorch are seeded, so that what an augmentation draws depends
    on nothing else; afterwards they are as before.
    """

    def __init__(self, name: str, dataset: Any, collate: Collate | None, check: Callable[[str, int, Any], Any]) -> None:
        self._name, self._dataset, self._collate, self._check = name, dataset, collate, check

    def __getitem__(self, request: Request) -> Any | Failure:
        with fork_rng(torch.device("cpu")):
            try:
                items = [self._item(*each) for each in zip(request.numbers, request.seeds, strict=True)]
                return self._check(self._name, len(items), self._batch(items))
            except TrainerError as error:
                return Failure(str(error))

    def _item(self, number: int, seed: int) -> Any:
        seed_processor(seed)
        try:
            return self._dataset[number]
        except Exception as error:
            raise TrainerError(f"{self._name}[{number}] cannot be read: {raised(error)}.") from None

    def _batch(self, items: list[Any]) -> Any:
        try:
            return (self._collate or default_collate)(items)
        except Exception as error:
            if self._collate is not None:
                raise TrainerError(f"collate fails for {len(items)} items of {self._name}: {raised(error)}.") from None
            raise TrainerError(
                f"{self._name} has items that do not make a batch ({shown(' '.join(str(error).split()), 200)}): give "
                "`collate`, a function from a list of items to a batch, as torch's DataLoader takes it."
            ) from None


class TensorReader:
    """Reads rows of tensors in memory, as a tuple."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = tuple(tensors)

    def __getitem__(self, request: Request) -> Any | Failure:
        rows = torch.as_tensor(request.numbers)
        return tuple(tensor[rows] for tensor in self._tensors)
