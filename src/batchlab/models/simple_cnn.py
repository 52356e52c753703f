"""The paper's simple CNN: two 5x5 convolutions, each with 2x2 max pooling, one hidden layer, softmax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from batchlab.models.averages import RunningAverages
from batchlab.models.base import Parameters, ParameterShape, PlainModel
from batchlab.models.convolution import conv_shapes, count_multiplications
from batchlab.models.fully_connected import dense_shapes
from batchlab.models.layers import conv2d, linear, max_pool

KERNEL = 5


class SimpleCnn(PlainModel):
    """Convolutions with `filters` filters ("same" padding, ReLU, pooling), then `hidden` units.

    Dropout on the hidden layer is off by default: the paper's use of it could not be confirmed.
    """

    def __init__(
        self,
        filters: tuple[int, int],
        hidden: int,
        input_shape: Sequence[int],
        num_classes: int,
        dropout: float = 0.0,
    ) -> None:
        channels, height, width = input_shape
        self.hidden, self.dropout = hidden, dropout
        self.shapes: dict[str, ParameterShape] = {
            **conv_shapes("conv_0", KERNEL, channels, filters[0]),
            **conv_shapes("conv_1", KERNEL, filters[0], filters[1]),
            **dense_shapes("dense_0", filters[1] * (height // 4) * (width // 4), hidden),
            **dense_shapes("dense_1", hidden, num_classes),
        }
        pixels = {"conv_0": height * width, "conv_1": (height // 2) * (width // 2)}
        self.multiplications = count_multiplications(self.shapes, pixels)

    def logits(
        self,
        parameters: Parameters,
        inputs: Tensor,
        masks: Tensor | None = None,
        averages: RunningAverages | None = None,
    ) -> Tensor:
        """Return [K, B, C]."""
        values = inputs
        for layer in ("conv_0", "conv_1"):
            # Pooling first gives the same values as ReLU first, with a quarter of the work.
            values = max_pool(conv2d(values, parameters[f"{layer}.weight"], parameters[f"{layer}.bias"])).relu()
        values = linear(values.flatten(2), parameters["dense_0.weight"], parameters["dense_0.bias"]).relu_()
        if masks is not None:
            values = values * masks
        return linear(values, parameters["dense_1.weight"], parameters["dense_1.bias"])

    def draw_masks(self, noise: np.random.Generator, batch_size: int) -> np.ndarray:
        """Return the hidden layer's mask [B, hidden], scaled so that its mean is 1."""
        keep = 1 - self.dropout
        return (noise.random((batch_size, self.hidden), np.float32) < keep).astype(np.float32) / np.float32(keep)
