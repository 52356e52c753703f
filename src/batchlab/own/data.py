"""Examples of the user's own: tensors in memory, which are gathered, or a Dataset, which is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import IterableDataset, TensorDataset

from batchlab.engine.source import Split
from batchlab.errors import TrainerError
from batchlab.own.loaded import Loaded
from batchlab.own.reader import Collate, ItemReader, TensorReader

TRIED = 4
"""Items of a Dataset that are read before anything else, so that what is wrong with it is told at once."""


def source_of(name: str, examples: Any, *, is_stepped: bool, collate: Collate | None, loaders: int) -> Split | Loaded:
    """Return examples as a program asks for them.

    They are tensors or arrays, inputs and labels, or a Dataset whose items are such pairs; where a `training_step`
    takes the batches, any number of tensors, or a Dataset of anything.
    """
    tensors = tensors_of(examples)
    if tensors is not None:
        return _rows(name, tensors) if is_stepped else _pair(name, tensors)
    if not (hasattr(examples, "__getitem__") and hasattr(examples, "__len__")) or isinstance(examples, IterableDataset):
        raise TrainerError(
            f"{name} is {type(examples).__name__}: give a pair of tensors, inputs and labels, or a Dataset of such "
            "pairs that has a length."
        )
    num_examples = len(examples)
    if not num_examples:
        raise TrainerError(f"{name} has no examples: give at least one.")
    reader = ItemReader(name, examples, collate, _as_it_is if is_stepped else _checked_pair)
    loaded = Loaded(reader, num_examples, loaders)
    loaded.first(min(TRIED, num_examples), 1, torch.device("cpu"))
    return loaded


def tensors_of(examples: Any) -> list[Tensor] | None:
    """Return the tensors that examples are; None where they are a Dataset."""
    if isinstance(examples, TensorDataset) and type(examples).__getitem__ is TensorDataset.__getitem__:
        examples = examples.tensors
    if isinstance(examples, tuple | list) and all(isinstance(each, Tensor | np.ndarray) for each in examples):
        return [_as_tensor(each) for each in examples]
    return None


def _as_tensor(values: Tensor | np.ndarray) -> Tensor:
    try:
        return torch.as_tensor(values)
    except TypeError:
        raise TrainerError(
            f"An array of {values.dtype} cannot be trained on: make numbers of it, such as one for each class."
        ) from None


def _pair(name: str, tensors: Sequence[Tensor]) -> Split:
    if len(tensors) != 2:
        raise TrainerError(f"{name} has {len(tensors)} parts: give two, inputs and labels.")
    inputs, labels = tensors
    if len(inputs) != len(labels) or not len(labels):
        raise TrainerError(f"{name} has {len(inputs):,} inputs and {len(labels):,} labels: give one label for each.")
    return Split(_single_precision(inputs), labels)


def _rows(name: str, tensors: Sequence[Tensor]) -> Loaded:
    lengths = {len(each) for each in tensors}
    if len(lengths) != 1 or not min(lengths):
        numbers = " and ".join(f"{len(each):,}" for each in tensors) or "no"
        raise TrainerError(f"{name} has tensors of {numbers} examples: give one row for each example in each.")
    return Loaded(TensorReader([_single_precision(each) for each in tensors]), lengths.pop(), loaders=0)


def _as_it_is(name: str, num_items: int, batch: Any) -> Any:
    return batch


def _checked_pair(name: str, num_items: int, batch: Any) -> tuple[Tensor, Tensor]:
    """Return a batch that is inputs and labels, one of each for each item."""
    parts = list(batch) if isinstance(batch, tuple | list) else [batch]
    if len(parts) != 2 or not all(isinstance(each, Tensor) for each in parts):
        found = f"{type(batch).__name__} of {len(parts)}" if isinstance(batch, tuple | list) else type(batch).__name__
        raise TrainerError(
            f"{name}: a batch is a {found}, not a pair of tensors, inputs and labels: give a `collate` that makes such "
            "pairs, or a `training_step` that takes it as it is."
        )
    inputs, labels = parts
    if [each.shape[:1] for each in parts] != [(num_items,)] * 2:
        raise TrainerError(
            f"{name}: a batch of {num_items} items has inputs {tuple(inputs.shape)} and labels {tuple(labels.shape)}: "
            f"give {num_items} of each."
        )
    return _single_precision(inputs), labels


def _single_precision(values: Tensor) -> Tensor:
    return values.float() if values.dtype == torch.float64 else values
