"""The parameters and gradients of K trials, as two [K, P] matrices that networks see through named views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

from batchlab.optim.layout import Layout

ROW = 16
"""Numbers in 64 bytes."""


class ParameterMatrix:
    """One trial in each row. `views` are leaves of autograd that share the memory of `values`.

    Where layers write the gradients of their weights in place (`is_written`), `view.grad` is where they write to.
    """

    def __init__(self, values: Tensor, layout: Layout, *, is_written: bool = False) -> None:
        self.layout = layout
        self.values = aligned(values)  # [K, P]
        self.gradients = aligned(torch.zeros_like(values))  # [K, P]
        self.views = {name: view.detach() for name, view in layout.segments(self.values).items()}
        self._slots = {name: slot.detach() for name, slot in layout.segments(self.gradients).items()}
        for view in self.views.values():
            view.requires_grad_()
        self._is_written, self._is_adopted, self._is_adding = is_written, False, True
        self.start(num_microbatches=1)

    @classmethod
    def of(cls, networks: Sequence[nn.Module], *, is_written: bool = False) -> Self:
        """Return the matrix with the parameters of a network in each row."""
        layout = Layout.of(dict(networks[0].named_parameters()))
        rows = torch.empty(len(networks), layout.size, device=next(networks[0].parameters()).device)
        for row, network in zip(rows, networks, strict=True):
            views = layout.segments(row.unsqueeze(0))
            for name, parameter in network.named_parameters():
                views[name].squeeze(0).copy_(parameter.detach())
        return cls(rows, layout, is_written=is_written)

    def keep(self, rows: Tensor) -> ParameterMatrix:
        """Return the matrix of some rows alone."""
        return ParameterMatrix(self.values[rows], self.layout, is_written=self._is_written)

    def adopt(self, network: nn.Module) -> None:
        """Let the parameters of a network, and their gradients, be views of the one row of the matrices."""
        for name, parameter in network.named_parameters():
            parameter.data = self.views[name].detach()[0]
            parameter.grad = self._slots[name][0]
        self._is_adopted = True

    def start(self, num_microbatches: int) -> None:
        """Make ready for a gradient in one or more parts; of a single one, layers may write theirs in place."""
        was_adding, self._is_adding = self._is_adding, num_microbatches > 1 or not self._is_written
        if self._is_adding:
            self.gradients.zero_()
        if self._is_adding != was_adding:
            for name, view in self.views.items():
                view.grad = None if self._is_adding else self._slots[name]

    def differentiate(self, losses: Tensor) -> None:
        """Add each trial's gradient of its own loss to `gradients`; `losses` is [K].

        The trials share no parameters, so the gradient of the sum holds every trial's gradient, exactly.
        A layer that has written its own gradient returns none here.
        """
        if self._is_adopted:
            losses.sum().backward()
            return
        gradients = torch.autograd.grad(losses.sum(), list(self.views.values()), allow_unused=True)
        for slot, gradient in zip(self._slots.values(), gradients, strict=True):
            if gradient is None:
                continue
            if self._is_adding:
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
