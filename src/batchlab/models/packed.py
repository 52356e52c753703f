"""Layers for K trials at once. While `in_place`, gradients are written straight to where the optimizer reads them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Slots = tuple[Tensor | None, Tensor | None]
"""Where the gradients of a weight and a bias are written to, if anywhere."""


class _InPlace:
    def __enter__(self) -> None:
        _Linear.is_in_place = True

    def __exit__(self, *error: object) -> None:
        _Linear.is_in_place = False


_IN_PLACE = _InPlace()


def in_place() -> AbstractContextManager[None]:
    """Let backward passes write the gradient of a weight to the `grad` that it had in the forward pass.

    Autograd is given none for it then.
    """
    return _IN_PLACE


def linear(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return inputs [K, B, I] times weight [K, O, I] plus bias [K, O], as [K, B, O]."""
    # Autocast would convert a weight in the forward pass and again in the backward pass.
    return _Linear.apply((weight.grad, bias.grad), *_in_autocast_dtype(inputs, weight, bias))


def grouped(images: Tensor) -> Tensor:
    """Return the images [K, B, C, H, W] of K trials as groups of channels: [B, K * C, H, W], stored channels-last.

    That is how the fastest kernels for convolutions and pooling read them, on CPUs and GPUs.
    """
    num_trials, batch_size, channels, height, width = images.shape
    stored = images.permute(1, 3, 4, 0, 2).reshape(batch_size, height, width, num_trials * channels)
    return stored.permute(0, 3, 1, 2)


def conv2d(groups: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the stride-1 "same" convolution of groups [B, K * C, H, W] with weight [K, O, C, h, w] and bias [K, O].

    The weight lies channels-last in the parameter matrix, as the groups do.
    """
    kernel = weight.permute(0, 1, 3, 4, 2).flatten(0, 1).permute(0, 3, 1, 2)
    return F.conv2d(groups, kernel, bias.flatten(), padding="same", groups=weight.shape[0])


def ungrouped(groups: Tensor, num_trials: int) -> Tensor:
    """Return groups [B, K * C, H, W] as one vector for each example of each trial: [K, B, C * H * W]."""
    return groups.unflatten(1, (num_trials, -1)).transpose(0, 1).flatten(2)


class _Linear(torch.autograd.Function):
    """A batched matrix product whose backward pass can fill the slots of weight and bias.

    Autograd would make a new gradient matrix and copy it; at small batch sizes, where a step is bound by memory, that
    copy is a third of the step. But a gradient that is written is lost to whoever else differentiates: so this is done
    only where it is asked for.
    """

    is_in_place = False

    @staticmethod
    def forward(ctx: Any, slots: Slots, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.slots = slots
        ctx.save_for_backward(inputs, weight)
        return torch.baddbmm(bias.unsqueeze(1), inputs, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, *output_gradients: Tensor) -> tuple[Tensor | None, ...]:
        (outputs,) = output_gradients
        inputs, weight = ctx.saved_tensors
        weight_slot, bias_slot = ctx.slots
        to_inputs = torch.bmm(outputs, weight) if ctx.needs_input_grad[1] else None
        if not _Linear.is_in_place or weight_slot is None or bias_slot is None:
            return None, to_inputs, torch.bmm(outputs.transpose(1, 2), inputs), outputs.sum(1)
        if weight_slot.dtype == outputs.dtype:
            torch.bmm(outputs.transpose(1, 2), inputs, out=weight_slot)
            torch.sum(outputs, 1, out=bias_slot)
        else:
            weight_slot.copy_(torch.bmm(outputs.transpose(1, 2), inputs))
            bias_slot.copy_(outputs.sum(1))
        return None, to_inputs, None, None


def _in_autocast_dtype(*tensors: Tensor) -> tuple[Tensor, ...]:
    device = tensors[0].device.type
    if device == "meta" or not torch.is_autocast_enabled(device):  # shapes alone have no precision
        return tensors
    return tuple(tensor.to(torch.get_autocast_dtype(device)) for tensor in tensors)
