"""Fully connected networks of any widths, and softmax regression, which has no hidden layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor

from batchlab.models import packed
from batchlab.models.base import Network, Parameters
from batchlab.models.layers import Dense


class FullyConnected(Network):
    """ReLU layers of the given widths on the flattened input, then a softmax output layer."""

    def __init__(self, widths: Sequence[int], input_shape: Sequence[int], num_classes: int) -> None:
        super().__init__()
        sizes = [math.prod(input_shape), *widths, num_classes]
        self.names = [f"dense_{layer}" for layer in range(len(sizes) - 1)]
        for name, (num_inputs, num_outputs) in zip(self.names, pairwise(sizes), strict=True):
            self.add_module(name, Dense(num_inputs, num_outputs))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return [B, C] for inputs [B, ...]."""
        values = inputs.flatten(1)
        for name in self.names:
            values = self.get_submodule(name)(values)
            if name != self.names[-1]:
                values = values.relu()
        return values

    def packed_logits(self, parameters: Parameters, inputs: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return [K, B, C] for K trials."""
        values = inputs.flatten(2)
        for name in self.names:
            values = packed.linear(values, parameters[f"{name}.weight"], parameters[f"{name}.bias"])
            if name != self.names[-1]:
                values = values.relu_()
        return values
