"""Where examples come from: tensors in memory, which are gathered, or anything else that can be read.

A `Source` gives the batches of a pack, step by step, in the order that seed and trial give: where they begin is told by
the clock alone. A batch is cut into microbatches, which are computed at once. `Split` holds tensors; `own.loaded` reads
the Datasets of a user.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from batchlab.core.clock import Clock, constant_examples
from batchlab.core.study import Study
from batchlab.engine.gang.share import Share
from batchlab.engine.order import ExampleOrder


class Microbatch(Protocol):
    """Some examples of a batch, for each trial: what is computed at once."""

    @property
    def part(self) -> slice:
        """Their places in the batch."""
        ...

    @property
    def inputs(self) -> Tensor:
        """Return [K, B, ...], on the device."""
        ...

    @property
    def labels(self) -> Tensor:
        """Return [K, B, ...], on the device."""
        ...


class Batch(Protocol):
    """The examples of one step."""

    @property
    def batch_size(self) -> int:
        """How many there are, for each trial."""
        ...

    def cut(self, size: int, share: Share | None = None) -> Sequence[Microbatch]:
        """Return all of them in order, `size` at once; the last ones may be fewer. Of each only a `share`, if given."""
        ...


class Batches(Protocol):
    """The batches of K trials."""

    def ahead(self, clock: Clock, batch_sizes: Sequence[int]) -> Sequence[Batch]:
        """Return those of the next steps: so many of these sizes, or fewer where reading them takes long."""
        ...

    def keep(self, live: np.ndarray) -> None:
        """Go on with the trials where `live` [K] is true."""
        ...


class Source(Protocol):
    """Examples to train on or to be judged by."""

    def __len__(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        ...

    def batches(self, study: Study, trial_ids: Sequence[int], device: torch.device) -> Batches:
        """Return the batches of some trials of a study."""
        ...

    def first(self, size: int, num_trials: int, device: torch.device) -> Microbatch:
        """Return the first examples, the same for each trial: to measure what they take."""
        ...

    def chunks(self, size: int) -> Iterator[Any]:
        """Yield inputs and labels, or whatever a batch is here, of `size` examples after another."""
        ...


@dataclass(frozen=True)
class Split:
    """Examples as tensors, which may be memory maps; only those in `rows` where they are given."""

    inputs: Tensor
    labels: Tensor
    rows: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels if self.rows is None else self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.inputs.shape[1:])

    def take(self, rows: np.ndarray) -> Split:
        """Return some of the examples."""
        return Split(self.inputs, self.labels, torch.from_numpy(rows))

    def batches(self, study: Study, trial_ids: Sequence[int], device: torch.device) -> Batches:
        """Return the batches of some trials: numbers of examples, gathered when they are used."""
        assert self.rows is None
        return _GatheredBatches(self, study, trial_ids, device)

    def first(self, size: int, num_trials: int, device: torch.device) -> Microbatch:
        """Return the first examples."""
        return Gathered(self, torch.arange(size, device=device).expand(num_trials, size), slice(0, size))

    def chunks(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs and labels of `size` examples after another; the last ones may be fewer."""
        for start in range(0, len(self), size):
            chunk = slice(start, start + size)
            part = chunk if self.rows is None else self.rows[chunk].to(self.labels.device)
            yield self.inputs[part], self.labels[part]


@dataclass(frozen=True)
class Gathered:
    """Examples of a split by their numbers [K, B]: a whole batch, or a part of it."""

    split: Split
    numbers: Tensor
    part: slice

    @property
    def batch_size(self) -> int:
        """How many there are, for each trial."""
        return self.numbers.shape[1]

    def cut(self, size: int, share: Share | None = None) -> Sequence[Microbatch]:
        """Return all of them in order, `size` at once."""
        if size >= self.batch_size and share is None:
            return [self]
        parts = cut_places(self.batch_size, size, share)
        return [Gathered(self.split, self.numbers[:, part], part) for part in parts]

    @property
    def inputs(self) -> Tensor:
        """Return [K, B, ...]."""
        return _gather(self.split.inputs, self.numbers)

    @property
    def labels(self) -> Tensor:
        """Return [K, B, ...]."""
        return _gather(self.split.labels, self.numbers)


class _GatheredBatches:
    def __init__(self, split: Split, study: Study, trial_ids: Sequence[int], device: torch.device) -> None:
        self._split, self._device = split, device
        self._orders = [ExampleOrder(len(split), study.seed, trial_id) for trial_id in trial_ids]

    def ahead(self, clock: Clock, batch_sizes: Sequence[int]) -> Sequence[Batch]:
        batches: list[Batch] = []
        start = clock.examples
        for size, same in groupby(batch_sizes):
            num_steps = len(list(same))
            batches += self._equal(start, num_steps, size)
            start += constant_examples(num_steps, size)
        return batches

    def _equal(self, start: int, num_steps: int, size: int) -> Sequence[Batch]:
        """Return batches of one size, from one example on."""
        orders = [order.take(start, num_steps * size).reshape(num_steps, size) for order in self._orders]
        numbers = torch.from_numpy(np.stack(orders, axis=1)).to(self._device)  # [num_steps, K, B]
        return [Gathered(self._split, each, slice(0, size)) for each in numbers]

    def keep(self, live: np.ndarray) -> None:
        self._orders = [order for order, is_live in zip(self._orders, live, strict=True) if is_live]


def cut_places(batch_size: int, size: int, share: Share | None = None) -> list[slice]:
    """Return the places of microbatches in a batch, or of a worker's share of each, if there is any.

    >>> cut_places(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    parts = [slice(start, min(start + size, batch_size)) for start in range(0, batch_size, size)]
    if share is None:
        return parts
    share.check(batch_size, size)
    return [part for part in map(share, parts) if part.start < part.stop]


def _gather(values: Tensor, numbers: Tensor) -> Tensor:
    """Return the rows numbers [K, B] of values, as [K, B, ...]; values that lie elsewhere are gathered there."""
    if values.device == numbers.device:
        return values.index_select(0, numbers.flatten()).unflatten(0, numbers.shape)
    return _gather(values, numbers.to(values.device)).to(numbers.device)
