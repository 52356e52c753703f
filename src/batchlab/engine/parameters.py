"""The parameters and gradients of K trials, as two [K, P] matrices that modules see through named views."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from batchlab.models.base import ParameterShape

ROW = 16
"""Numbers in 64 bytes."""


class ParameterMatrix:
    """One trial in each row. `views` are leaves of autograd that share the memory of `values`."""

    def __init__(self, values: Tensor, shapes: Mapping[str, ParameterShape]) -> None:
        self.values = aligned(values)  # [K, P]
        self.gradients = aligned(torch.zeros_like(values))  # [K, P]
        self.views = _named_views(self.values, shapes)
        self._slots = list(_named_views(self.gradients, shapes).values())
        for view in self.views.values():
            view.requires_grad_()
        self.is_adding = True
        self.start(num_pieces=1)

    def start(self, num_pieces: int) -> None:
        """Make ready for a gradient in one or more pieces; of a single one, layers may write their part in place."""
        was_adding, self.is_adding = self.is_adding, num_pieces > 1
        if self.is_adding:
            self.gradients.zero_()
        if self.is_adding == was_adding:
            return
        for view, slot in zip(self.views.values(), self._slots, strict=True):
            view.grad = None if self.is_adding else slot

    def differentiate(self, losses: Tensor) -> None:
        """Fill `gradients` with each trial's gradient of its own loss; `losses` is [K]. Pieces are added up.

        The trials share no parameters, so the gradient of the sum holds every trial's gradient, exactly.
        A layer that has written its own gradient returns none here.
        """
        leaves = list(self.views.values())
        gradients = torch.autograd.grad(losses.sum(), leaves, allow_unused=True)
        for slot, gradient in zip(self._slots, gradients, strict=True):
            if gradient is None:
                continue
            if self.is_adding:
                slot.add_(gradient)
            else:
                slot.copy_(gradient)


def aligned(matrix: Tensor) -> Tensor:
    """Return the matrix with every row at a multiple of 64 bytes.

    Products round differently where their operands are not aligned: so a trial's bits would depend on its row.
    """
    num_rows, num_columns = matrix.shape
    padded = matrix.new_zeros(num_rows, -(-num_columns // ROW) * ROW)
    padded[:, :num_columns] = matrix
    return padded[:, :num_columns]


def _named_views(matrix: Tensor, shapes: Mapping[str, ParameterShape]) -> dict[str, Tensor]:
    views, start = {}, 0
    for name, shape in shapes.items():
        stop = start + math.prod(shape.shape)
        views[name] = matrix[:, start:stop].unflatten(1, shape.shape).detach()
        start = stop
    return views
