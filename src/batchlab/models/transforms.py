"""Fast kernels that step aside where a second derivative or a transform of `torch.func` is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Formula = Callable[..., Tensor]


def is_transformed() -> bool:
    """Return whether `vmap`, `grad`, `jvp` or another transform of `torch.func` is at work."""
    return bool(torch._C._are_functorch_transforms_active())


def with_plain(fast: Formula, plain: Formula, *inputs: Tensor) -> Tensor:
    """Return `fast(*inputs)`, which `plain` equals: that is computed where `fast` cannot be differentiated twice."""
    return plain(*inputs) if is_transformed() else _Fast.apply(fast, plain, *inputs)


class _Fast(torch.autograd.Function):
    """A formula with a graph of its own for its first derivative; the second comes from the plain formula."""

    @staticmethod
    def forward(ctx: Any, fast: Formula, plain: Formula, *inputs: Tensor) -> Tensor:
        ctx.plain = plain
        ctx.save_for_backward(*inputs)
        ctx.leaves = [each.detach().requires_grad_(each.requires_grad) for each in inputs]
        with torch.enable_grad():
            ctx.outputs = fast(*ctx.leaves)
        return ctx.outputs.detach()

    @staticmethod
    def backward(ctx: Any, *output_gradients: Tensor) -> Any:
        is_twice = torch.is_grad_enabled()
        leaves = ctx.saved_tensors if is_twice else ctx.leaves
        outputs = ctx.plain(*leaves) if is_twice else ctx.outputs
        return None, None, *gradients(outputs, leaves, output_gradients, create_graph=is_twice)


def gradients(
    outputs: Tensor, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor], *, create_graph: bool
) -> list[Tensor | None]:
    """Return the gradient with respect to each input, None for one that requires none."""
    wanted = [each for each in inputs if each.requires_grad]
    found = iter(torch.autograd.grad(outputs, wanted, output_gradients, create_graph=create_graph, retain_graph=True))
    return [next(found) if each.requires_grad else None for each in inputs]
