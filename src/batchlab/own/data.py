"""Examples of the user's own, as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import TensorDataset, default_collate

from batchlab.engine.source import Split
from batchlab.errors import TrainerError


def split_of(name: str, examples: Any) -> Split:
    """Return examples as tensors in memory: a pair of tensors or arrays, or a Dataset whose items are such pairs."""
    if isinstance(examples, TensorDataset):
        examples = examples.tensors
    if isinstance(examples, tuple | list) and all(isinstance(each, Tensor | np.ndarray) for each in examples):
        return _pair(name, [torch.as_tensor(each) for each in examples])
    if hasattr(examples, "__getitem__") and hasattr(examples, "__len__"):
        return _pair(name, _collated(name, examples))
    raise TrainerError(
        f"{name} is {type(examples).__name__}: give a pair of tensors, inputs and labels, or a Dataset of such pairs."
    )


def _collated(name: str, dataset: Any) -> list[Tensor]:
    """Return all items of a Dataset as one batch."""
    items = [dataset[index] for index in range(len(dataset))]
    try:
        return list(default_collate(items))
    except (RuntimeError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise TrainerError(f"{name} has items that do not make a batch: {reason}") from None


def _pair(name: str, tensors: list[Tensor]) -> Split:
    if len(tensors) != 2:
        raise TrainerError(f"{name} has {len(tensors)} parts: give two, inputs and labels.")
    inputs, labels = tensors
    if len(inputs) != len(labels) or not len(labels):
        raise TrainerError(f"{name} has {len(inputs):,} inputs and {len(labels):,} labels: give one label for each.")
    return Split(inputs.float() if inputs.dtype == torch.float64 else inputs, labels)
