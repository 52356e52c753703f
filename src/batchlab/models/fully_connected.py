"""Fully connected networks of any widths, and softmax regression, which has no hidden layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor

from batchlab.models.averages import RunningAverages
from batchlab.models.base import Parameters, ParameterShape, PlainModel
from batchlab.models.layers import linear


def dense_shapes(name: str, num_inputs: int, num_outputs: int) -> dict[str, ParameterShape]:
    """Return the weight and the bias of one dense layer."""
    return {
        f"{name}.weight": ParameterShape((num_outputs, num_inputs), num_inputs, num_outputs),
        f"{name}.bias": ParameterShape((num_outputs,)),
    }


class FullyConnected(PlainModel):
    """ReLU layers of the given widths on the flattened input, then a softmax output layer."""

    def __init__(self, widths: Sequence[int], input_shape: Sequence[int], num_classes: int) -> None:
        sizes = [math.prod(input_shape), *widths, num_classes]
        self.num_layers = len(sizes) - 1
        self.shapes: dict[str, ParameterShape] = {}
        for layer, (num_inputs, num_outputs) in enumerate(pairwise(sizes)):
            self.shapes |= dense_shapes(f"dense_{layer}", num_inputs, num_outputs)
        self.multiplications = sum(shape.size for shape in self.shapes.values())

    def logits(
        self,
        parameters: Parameters,
        inputs: Tensor,
        masks: Tensor | None = None,
        averages: RunningAverages | None = None,
    ) -> Tensor:
        """Return [K, B, C]."""
        values = inputs.flatten(2)
        for layer in range(self.num_layers):
            values = linear(values, parameters[f"dense_{layer}.weight"], parameters[f"dense_{layer}.bias"])
            if layer < self.num_layers - 1:
                values = values.relu_()
        return values
