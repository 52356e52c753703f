"""In which precision a model computes, and how far its gradients may so lie apart and be the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-4, torch.bfloat16: 3e-2, torch.float16: 1e-2}
"""How far gradients may lie apart, relative to their norm: rounding leaves no more in each precision.
In float64 rounding leaves 1e-14, and what is left of 1e-6 is for steps that add a small constant somewhere."""

OTHER_TOLERANCE = 1e-4
"""Of any other precision."""


def tolerance_of(precision: torch.dtype) -> float:
    """Return how far gradients may lie apart."""
    return TOLERANCES.get(precision, OTHER_TOLERANCE)


def coarsest(precisions: Iterable[torch.dtype]) -> torch.dtype:
    """Return the precision that rounds most."""
    return max(precisions, key=tolerance_of)


@contextmanager
def noted_precisions(model: nn.Module) -> Iterator[set[torch.dtype]]:
    """Note what the modules of a model give: under autocast that is coarser than their weights."""
    found: set[torch.dtype] = set()

    def note(module: nn.Module, inputs: Any, outputs: Any) -> None:
        found.update(each.dtype for each in tree_leaves(outputs) if isinstance(each, Tensor) and each.requires_grad)

    handles = [each.register_forward_hook(note) for each in model.modules()]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
