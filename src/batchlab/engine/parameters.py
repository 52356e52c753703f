"""The parameters and gradients of K trials, as two [K, P] matrices that modules see through named views."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from batchlab.models.base import ParameterShape


class ParameterMatrix:
    """One trial in each row. `views` are leaves of autograd that share the memory of `values`."""

    def __init__(self, values: Tensor, shapes: Mapping[str, ParameterShape]) -> None:
        self.values = values  # [K, P]
        self.gradients = torch.zeros_like(values)  # [K, P]
        self.views = _named_views(self.values, shapes)
        for name, slot in _named_views(self.gradients, shapes).items():
            self.views[name].requires_grad_()
            self.views[name].grad = slot

    def differentiate(self, losses: Tensor) -> None:
        """Fill `gradients` with each trial's gradient of its own loss; `losses` is [K].

        The trials share no parameters, so the gradient of the sum holds every trial's gradient, exactly.
        A layer that has written its own gradient returns none here.
        """
        leaves = list(self.views.values())
        for leaf, gradient in zip(leaves, torch.autograd.grad(losses.sum(), leaves, allow_unused=True), strict=True):
            if gradient is not None:
                assert leaf.grad is not None
                leaf.grad.copy_(gradient)


def _named_views(matrix: Tensor, shapes: Mapping[str, ParameterShape]) -> dict[str, Tensor]:
    views, start = {}, 0
    for name, shape in shapes.items():
        stop = start + math.prod(shape.shape)
        views[name] = matrix[:, start:stop].unflatten(1, shape.shape).detach()
        start = stop
    return views
