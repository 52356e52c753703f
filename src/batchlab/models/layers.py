"""The layers that our networks are made of, each with the way it starts."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from batchlab.models.base import Layer, fill_constant, fill_glorot, fill_normal, parameter
from batchlab.models.transforms import is_transformed


class Dense(Layer):
    """A matrix product, plus a bias where there is one; `fans` are those of its parts where it is made of several."""

    def __init__(
        self, num_inputs: int, num_outputs: int, has_bias: bool = True, fans: tuple[int, int] | None = None
    ) -> None:
        super().__init__()
        self.fans = fans or (num_inputs, num_outputs)
        self.weight = parameter(num_outputs, num_inputs)
        self.bias = parameter(num_outputs) if has_bias else None

    def start(self, init: np.random.Generator) -> None:
        """Draw the weight Glorot-uniform; the bias is zero."""
        fill_glorot(self.weight, init, self.fans)
        if self.bias is not None:
            fill_constant(self.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return [..., O] for inputs [..., I]."""
        return F.linear(inputs, self.weight, self.bias)


class Convolution(Layer):
    """A convolution with a square kernel of odd side.

    The padding is symmetric, half a kernel on each side: "same" for stride 1; stride 2 leaves half of the pixels,
    rounded up. The weight lies channels-last; inputs should too: see `channels_last`.
    """

    def __init__(self, kernel: int, num_inputs: int, num_outputs: int, stride: int = 1, has_bias: bool = True) -> None:
        super().__init__()
        self.stride, self.padding = stride, kernel // 2
        self.weight = parameter(num_outputs, num_inputs, kernel, kernel)
        self.bias = parameter(num_outputs) if has_bias else None

    def start(self, init: np.random.Generator) -> None:
        """Draw the weight Glorot-uniform, its fans counted over the kernel's area; the bias is zero."""
        num_outputs, num_inputs, *sides = self.weight.shape
        area = sides[0] * sides[1]
        fill_glorot(self.weight, init, (area * num_inputs, area * num_outputs))
        if self.bias is not None:
            fill_constant(self.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Return [B, O, H, W] for images [B, C, H, W]."""
        return F.conv2d(images, self.weight, self.bias, self.stride, self.padding)


class Embedding(Layer):
    """A vector for each token of a vocabulary."""

    def __init__(self, vocabulary: int, width: int, std: float) -> None:
        super().__init__()
        self.std = std
        self.weight = parameter(vocabulary, width)

    def start(self, init: np.random.Generator) -> None:
        """Draw the vectors normally around zero."""
        fill_normal(self.weight, init, self.std)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return [B, T, width] for tokens [B, T]."""
        return F.embedding(tokens, self.weight)


class LayerNorm(Layer):
    """Layer normalisation, with a scale that starts at 1 and a bias that starts at 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale, self.bias = parameter(width), parameter(width)

    def start(self, init: np.random.Generator) -> None:
        """Begin as the plain normalisation."""
        fill_constant(self.scale, 1.0)
        fill_constant(self.bias)

    def forward(self, values: Tensor) -> Tensor:
        """Return values [..., width], each vector normalised."""
        return F.layer_norm(values, values.shape[-1:], self.scale, self.bias)


def channels_last(images: Tensor) -> Tensor:
    """Return the images [B, C, H, W], stored as the fastest kernels on CPUs and GPUs read them."""
    return images if is_transformed() else images.contiguous(memory_format=torch.channels_last)


def halved(side: int) -> int:
    """Return what stride 2 leaves of a side.

    >>> halved(224), halved(7), halved(1)
    (112, 4, 1)
    """
    return (side + 1) // 2
