"""What a network is here: an `nn.Module` that maps the inputs [B, ...] of one trial to logits.

Any module is one. Ours are `Network`s: they start from NumPy's generators, so that a trial starts alike on every
device, and they tell the engine what it can use. Shape letters of this room: K trials, B examples, C classes or
channels, T tokens, I inputs and O outputs of a layer.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from batchlab.core.shapes import stored_shape

Parameters = Mapping[str, Tensor]


class Layer(nn.Module, ABC):
    """A module of ours that holds parameters and knows how they start."""

    @abstractmethod
    def start(self, init: np.random.Generator) -> None:
        """Set the layer's own parameters, in the order in which they were registered."""


class Network(nn.Module):
    """A network made of our layers: Glorot-uniform weights and zero biases where a layer says nothing else.

    The paper does not state its initialisers; these are the defaults of the library it used. They are the same
    at every batch size.
    """

    ghost_size = 1
    """The number of consecutive examples of a batch that are normalised together; 1 without normalised layers."""

    dropout = 0.0
    """The share of units dropped while training; 0 means that `draw_masks` is never called."""

    masks: Tensor | None = None
    """What `draw_masks` gave for the examples at hand, set before each training pass where units are dropped."""

    def start(self, init: np.random.Generator) -> None:
        """Set every parameter to its initial value."""
        for module in self.modules():
            if isinstance(module, Layer):
                module.start(init)

    @property
    def starts_all(self) -> bool:
        """Whether `start` sets every parameter: none is a module's that is no layer of ours."""
        return all(isinstance(each, Layer) for each in self.modules() if any(True for _ in each.parameters(False)))

    def draw_masks(self, noise: np.random.Generator, batch_size: int) -> np.ndarray:
        """Return one trial's dropout mask for one batch, scaled by 1/keep; here all is kept."""
        return np.ones((batch_size, 1), np.float32)

    def begin_step(self) -> None:
        """Make ready for the microbatches of a training step, forgetting one that was not finished."""

    def end_step(self) -> None:
        """Take in what the microbatches of a training step have told: running averages, say."""


@runtime_checkable
class Packable(Protocol):
    """A network with a hand-written form that computes K trials at once."""

    def packed_logits(self, parameters: Parameters, inputs: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return [K, B, C] for parameters [K, ...], inputs [K, B, ...] and, while training, masks [K, B, ...]."""
        ...


def num_parameters(module: nn.Module) -> int:
    """Return P, the number of parameters of one trial."""
    return sum(parameter.numel() for parameter in module.parameters())


def parameter(*shape: int) -> nn.Parameter:
    """Return a parameter without a value yet; the weight of a convolution lies channels-last, as kernels read it."""
    is_kernel = len(shape) == 4
    memory_format = torch.channels_last if is_kernel else torch.contiguous_format
    return nn.Parameter(torch.empty(shape, memory_format=memory_format))


def fill(target: nn.Parameter, values: np.ndarray) -> None:
    """Set a parameter to values that are in the order of its memory."""
    tensor = torch.from_numpy(values)
    target.detach().copy_(tensor.permute(0, 3, 1, 2) if tensor.dim() == 4 else tensor)


def fill_glorot(target: nn.Parameter, init: np.random.Generator, fans: Sequence[int]) -> None:
    """Draw a parameter Glorot-uniform for its fan-in and fan-out."""
    limit = math.sqrt(6 / sum(fans))
    fill(target, (limit * (2 * init.random(stored_shape(target.shape), np.float32) - 1)).astype(np.float32))


def fill_normal(target: nn.Parameter, init: np.random.Generator, std: float) -> None:
    """Draw a parameter normally around zero."""
    fill(target, (std * init.standard_normal(stored_shape(target.shape), np.float32)).astype(np.float32))


def fill_constant(target: nn.Parameter, value: float = 0.0) -> None:
    """Set all of a parameter to one value."""
    target.detach().fill_(value)
