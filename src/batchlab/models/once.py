"""Backward passes that may be run but not differentiated."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

Backward = Callable[..., tuple[Tensor | None, ...]]


def once_differentiable(backward: Backward) -> Backward:
    """Return the backward pass of a Function such that a second derivative through it raises.

    The decorator of this name in PyTorch raises only where the whole graph is run backward: asked for the
    derivative by some tensors, `torch.autograd.grad` goes around it and returns the rest of a sum, without a word.
    """

    @wraps(backward)
    def once(ctx: Any, *output_gradients: Tensor) -> tuple[Tensor | None, ...]:
        with torch.no_grad():
            gradients = backward(ctx, *output_gradients)
        if not torch.is_grad_enabled():
            return gradients
        sources = (*ctx.saved_tensors, *output_gradients)
        return tuple(None if each is None else _Refusal.apply(each, *sources) for each in gradients)

    return once


class _Refusal(torch.autograd.Function):
    """The identity of its first tensor, tied to all it was computed from, whose derivative is refused."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *sources: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, *output_gradients: Tensor) -> Any:
        raise RuntimeError("a layer of batchlab was differentiated twice; its gradient is written for once")
