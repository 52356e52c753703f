"""The optimizer of one program: what it remembers, and how it makes an update."""

from __future__ import annotations

import torch
from torch import Tensor

from batchlab.engine.parameters import ParameterMatrix
from batchlab.engine.timetable import Ahead
from batchlab.optim.base import Optimizer

ROW_BY_ROW = 1 << 17
"""Parameters of a trial from which on its update is one fused kernel, where the optimizer has one: below, the K calls
cost more than the memory that they save. The bits of a trial so depend on its network and not on its pack."""


class Updating:
    """An optimizer of K trials."""

    def __init__(self, optimizer: Optimizer, parameters: ParameterMatrix) -> None:
        self._optimizer = optimizer
        self._update_row = optimizer.update_row if parameters.layout.size >= ROW_BY_ROW else None
        self.state = optimizer.init(parameters.values)
        """All that it remembers, [K, ...] each."""

    @property
    def takes_parts(self) -> bool:
        """Whether it updates the parameters of a network one after the other as well as all at once."""
        return self._update_row is not None and self._optimizer.is_elementwise

    @torch.no_grad()
    def update(self, parameters: ParameterMatrix, ahead: Ahead, index: int) -> None:
        """Make one of the updates `ahead`, of every trial."""
        values, gradients, update_row = parameters.values, parameters.gradients, self._update_row
        if update_row is None:
            self._optimizer.update(values, gradients, self.state, ahead.now(index))
        elif parameters.is_scattered:
            for part in parameters.parts(self.state):
                update_row(*part, ahead.now_of_row(index, 0))
        else:
            for row in range(len(values)):
                state = {name: matrix[row] for name, matrix in self.state.items()}
                update_row(values[row], gradients[row], state, ahead.now_of_row(index, row))

    def keep(self, rows: Tensor) -> None:
        """Go on with some of the trials."""
        self.state = {name: tensor[rows] for name, tensor in self.state.items()}
