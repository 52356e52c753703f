"""Convolutions of one trial: their parameters, their padding and their work."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from batchlab.models.base import ParameterShape


def conv_shapes(
    name: str, kernel: int, num_inputs: int, num_outputs: int, has_bias: bool = True
) -> dict[str, ParameterShape]:
    """Return the weight [O, h, w, C] and, unless a normalisation follows, the bias of one convolution."""
    area = kernel * kernel
    shapes = {
        f"{name}.weight": ParameterShape(
            (num_outputs, kernel, kernel, num_inputs), area * num_inputs, area * num_outputs
        )
    }
    return shapes | ({f"{name}.bias": ParameterShape((num_outputs,))} if has_bias else {})


def conv2d_single(inputs: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1) -> Tensor:
    """Return the convolution of [B, C, H, W] with weight [O, h, w, C], odd sides, and bias [O].

    The padding is symmetric, half a kernel on each side: "same" for stride 1; stride 2 leaves half of the pixels,
    rounded up. The weight lies channels-last, as in `layers.conv2d`; inputs should too: see `channels_last`.
    """
    return F.conv2d(inputs, weight.permute(0, 3, 1, 2), bias, stride, weight.shape[1] // 2)


def channels_last(images: Tensor) -> Tensor:
    """Return the images [B, C, H, W], stored as the fastest kernels on CPUs and GPUs read them."""
    return images.contiguous(memory_format=torch.channels_last)


def halved(side: int) -> int:
    """Return what stride 2 leaves of a side.

    >>> halved(224), halved(7), halved(1)
    (112, 4, 1)
    """
    return (side + 1) // 2


def count_multiplications(shapes: Mapping[str, ParameterShape], pixels: Mapping[str, int]) -> int:
    """Return the multiplications of one example: each parameter is used once for each output pixel of its layer.

    >>> count_multiplications(conv_shapes("conv", 3, 1, 8, has_bias=False), {"conv": 28 * 28})
    56448
    """
    return sum(shape.size * pixels.get(name.rpartition(".")[0], 1) for name, shape in shapes.items())
