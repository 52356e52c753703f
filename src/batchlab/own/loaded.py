"""A source of examples that are read when they are asked for, batch by batch: any Dataset of the user's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor

from batchlab.core.clock import Clock, Clocks
from batchlab.core.study import Study
from batchlab.engine.gang.share import Share
from batchlab.engine.order import ExampleOrder
from batchlab.engine.source import Batch, Batches, Microbatch, cut_places
from batchlab.own.content import copied, moved, num_bytes
from batchlab.own.loading import read
from batchlab.own.reader import EVALUATED, TRAINED, Reader, Request, seeds_at

HELD_BYTES = 1 << 28
"""An evaluated split up to this size is read once and kept in memory."""

EXAMPLES_AHEAD = 256
"""Examples after which a program looks for a stop signal: reading them may take longer than training on them."""


class Loaded:
    """Examples that a reader reads; only those in `rows` where they are given."""

    def __init__(self, reader: Reader, num_examples: int, loaders: int, rows: np.ndarray | None = None) -> None:
        self._reader, self._num_examples, self._loaders, self._rows = reader, num_examples, loaders, rows
        self._held: dict[int, list[Any]] = {}

    def __len__(self) -> int:
        return self._num_examples if self._rows is None else len(self._rows)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self._content_of_first(1)[0].shape[1:])

    def take(self, rows: np.ndarray) -> Loaded:
        """Return some of the examples."""
        return Loaded(self._reader, self._num_examples, self._loaders, rows)

    def batches(self, study: Study, trial_ids: Sequence[int], device: torch.device) -> Batches:
        """Return the batches of one trial."""
        assert self._rows is None
        (trial_id,) = trial_ids
        order = ExampleOrder(self._num_examples, study.seed, trial_id)
        return _LoadedBatches(_Pipeline(self._reader, self._loaders, order), device)

    def first(self, size: int, num_trials: int, device: torch.device) -> Microbatch:
        """Return the first examples, for one trial."""
        assert num_trials == 1
        return LoadedMicrobatch(self._content_of_first(size), slice(0, size), device)

    def chunks(self, size: int) -> Iterator[Any]:
        """Yield batches of `size` examples, in their own order; a small split is kept for the next time."""
        if size in self._held:
            yield from self._held[size]
            return
        rows = np.arange(self._num_examples) if self._rows is None else self._rows
        held, room = list[Any](), float(HELD_BYTES)
        for content in read(self._reader, _evaluated(rows, size), self._loaders):
            room -= num_bytes(content)
            if room >= 0:
                held.append(copied(content))
            else:
                held.clear()
            yield content
        if room >= 0:
            self._held = {size: held}

    def _content_of_first(self, size: int) -> Any:
        return next(read(self._reader, _evaluated(np.arange(size), size), loaders=0))


@dataclass(frozen=True)
class LoadedMicrobatch:
    """Some examples of one trial, as they were read."""

    read: Any
    part: slice
    device: torch.device

    @property
    def content(self) -> Any:
        """Return what was read, on the device."""
        return moved(self.read, self.device)

    @property
    def inputs(self) -> Tensor:
        """Return [1, B, ...], where inputs and labels were read."""
        inputs: Tensor = self.read[0]
        return inputs.to(self.device).unsqueeze(0)

    @property
    def labels(self) -> Tensor:
        """Return [1, B, ...], where inputs and labels were read."""
        labels: Tensor = self.read[1]
        return labels.to(self.device).unsqueeze(0)


class _LoadedBatches:
    def __init__(self, pipeline: _Pipeline, device: torch.device) -> None:
        self._pipeline, self._device = pipeline, device

    def ahead(self, clock: Clock, batch_sizes: Sequence[int]) -> Sequence[Batch]:
        sizes = batch_sizes[: max(1, EXAMPLES_AHEAD // batch_sizes[0])]
        starts = Clocks.of(clock, sizes).examples.tolist()
        return [
            _LoadedBatch(self._pipeline, start, size, self._device) for start, size in zip(starts, sizes, strict=True)
        ]

    def keep(self, live: np.ndarray) -> None:
        if not live.any():
            self._pipeline.end()


@dataclass(frozen=True)
class _LoadedBatch:
    pipeline: _Pipeline
    start: int
    batch_size: int
    device: torch.device

    def cut(self, size: int, share: Share | None = None) -> Sequence[Microbatch]:
        parts = cut_places(self.batch_size, size, share)
        contents = self.pipeline.read(self.start, self.batch_size, parts)
        return [LoadedMicrobatch(content, part, self.device) for content, part in zip(contents, parts, strict=True)]


class _Pipeline:
    """The microbatches of one trial, batch after batch, read ahead.

    Whoever asks for another batch than the next one, or for one of another size, has it begin there.
    """

    def __init__(self, reader: Reader, loaders: int, order: ExampleOrder) -> None:
        self._reader, self._loaders, self._order = reader, loaders, order
        self._next: tuple[int, int, list[slice]] | None = None
        self._contents: Iterator[Any] = iter(())

    def read(self, start: int, batch_size: int, parts: list[slice]) -> list[Any]:
        """Return the contents of the microbatches at some places of the batch that begins at `start`."""
        if self._next != (start, batch_size, parts):
            self.end()
            self._contents = read(self._reader, _trained(self._order, start, batch_size, parts), self._loaders)
        self._next = None
        contents = [next(self._contents) for _ in parts]
        self._next = (start + batch_size, batch_size, parts)
        return contents

    def end(self) -> None:
        """End the loading processes."""
        self._contents, self._next = iter(()), None


def _trained(order: ExampleOrder, first: int, batch_size: int, parts: Sequence[slice]) -> Iterator[Request]:
    """Yield what the microbatches of all batches from one on ask for, if they are of one size."""
    for start in count(first, batch_size):
        numbers = order.take(start, batch_size).tolist()
        seeds = seeds_at(start, batch_size, order.seed, order.trial_id, TRAINED).tolist()
        for part in parts:
            yield Request(numbers[part], seeds[part])


def _evaluated(rows: np.ndarray, size: int) -> Iterator[Request]:
    """Yield what asks for some examples, `size` at once, as they are always measured."""
    seeds = seeds_at(0, int(rows.max()) + 1, 0, 0, EVALUATED)[rows]
    for part in cut_places(len(rows), size):
        yield Request(rows[part].tolist(), seeds[part].tolist())
