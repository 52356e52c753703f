"""Tensors as arrays of NumPy, which has no bfloat16."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def as_numbers(tensor: Tensor) -> np.ndarray:
    """Return the values of a tensor, copied; those of bfloat16 as float32, which holds each of them."""
    tensor = tensor.float() if tensor.dtype is torch.bfloat16 else tensor
    return tensor.cpu().numpy().copy()


def as_bits(tensor: Tensor) -> np.ndarray:
    """Return a tensor to be stored, copied; bfloat16 as the integers that have the same bits."""
    tensor = tensor.view(torch.int16) if tensor.dtype is torch.bfloat16 else tensor
    return tensor.cpu().numpy().copy()


def from_bits(array: np.ndarray, dtype: torch.dtype) -> Tensor:
    """Return the tensor of this type that was stored.

    >>> tensor = torch.tensor([1.5, -0.1], dtype=torch.bfloat16)
    >>> bool((from_bits(as_bits(tensor), torch.bfloat16) == tensor).all())
    True
    """
    stored = torch.from_numpy(array)
    return stored.view(torch.bfloat16) if dtype is torch.bfloat16 else stored
