"""Layers for K trials at once. The gradient of a weight is written straight to where the optimizer reads it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def linear(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return inputs [K, B, I] times weight [K, O, I] plus bias [K, O], as [K, B, O]."""
    return _Linear.apply(inputs, weight, bias)


def conv2d(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the stride-1 "same" convolution of [K, B, C, H, W] with weight [K, O, C, h, w] and bias [K, O].

    The weight lies channels-last in the parameter matrix, because that is how the fastest kernels on
    CPUs and GPUs read it. Several trials run as the groups of one convolution.
    """
    num_trials = inputs.shape[0]
    kernel = weight.permute(0, 1, 3, 4, 2).flatten(0, 1).permute(0, 3, 1, 2)
    if num_trials == 1:
        return F.conv2d(inputs[0], kernel, bias[0], padding="same").unsqueeze(0)
    images = inputs.transpose(0, 1).flatten(1, 2)
    outputs = F.conv2d(images, kernel, bias.flatten(), padding="same", groups=num_trials)
    return outputs.unflatten(1, (num_trials, -1)).transpose(0, 1)


def max_pool(inputs: Tensor) -> Tensor:
    """Return the maximum of every 2x2 square of [K, B, C, H, W]."""
    return F.max_pool2d(inputs.flatten(0, 1), 2).unflatten(0, inputs.shape[:2])


class _Linear(torch.autograd.Function):
    """A batched matrix product whose backward pass fills `weight.grad` in place.

    Autograd would make a new gradient matrix and copy it; at small batch sizes, where a step is bound by memory, that
    copy is a third of the step. Where `weight.grad` is not set, or the gradient is itself to be differentiated, it
    returns the gradients as usual.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.slots = weight.grad, bias.grad
        # Autocast would convert a weight here and again in the backward pass.
        inputs, weight, bias = _in_autocast_dtype(inputs, weight, bias)
        ctx.save_for_backward(inputs, weight)
        return torch.baddbmm(bias.unsqueeze(1), inputs, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, *output_gradients: Tensor) -> tuple[Tensor | None, ...]:
        (outputs,) = output_gradients
        inputs, weight = ctx.saved_tensors
        weight_slot, bias_slot = ctx.slots
        to_inputs = torch.bmm(outputs, weight) if ctx.needs_input_grad[0] else None
        if weight_slot is None or torch.is_grad_enabled():
            return to_inputs, torch.bmm(outputs.transpose(1, 2), inputs), outputs.sum(1)
        if weight_slot.dtype == outputs.dtype:
            torch.bmm(outputs.transpose(1, 2), inputs, out=weight_slot)
            torch.sum(outputs, 1, out=bias_slot)
        else:
            weight_slot.copy_(torch.bmm(outputs.transpose(1, 2), inputs))
            bias_slot.copy_(outputs.sum(1))
        return to_inputs, None, None


def _in_autocast_dtype(*tensors: Tensor) -> tuple[Tensor, ...]:
    device = tensors[0].device.type
    if device == "meta" or not torch.is_autocast_enabled(device):  # shapes alone have no precision
        return tensors
    return tuple(tensor.to(torch.get_autocast_dtype(device)) for tensor in tensors)
