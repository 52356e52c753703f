"""The paper's simple CNN: two 5x5 convolutions, each with 2x2 max pooling, one hidden layer, softmax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from batchlab.models import packed
from batchlab.models.base import Network, Parameters
from batchlab.models.layers import Convolution, Dense

KERNEL = 5


class SimpleCnn(Network):
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
        super().__init__()
        channels, height, width = input_shape
        self.hidden, self.dropout = hidden, dropout
        self.conv_0 = Convolution(KERNEL, channels, filters[0])
        self.conv_1 = Convolution(KERNEL, filters[0], filters[1])
        self.dense_0 = Dense(filters[1] * (height // 4) * (width // 4), hidden)
        self.dense_1 = Dense(hidden, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return [B, C] for images [B, channels, height, width]."""
        values = images
        for convolution in (self.conv_0, self.conv_1):
            # Pooling first gives the same values as ReLU first, with a quarter of the work.
            values = F.max_pool2d(convolution(values), 2).relu()
        values = self.dense_0(values.flatten(1)).relu()
        if self.training and self.masks is not None:
            values = values * self.masks
        elif self.dropout:  # inside a module of somebody else, which gives no masks
            values = F.dropout(values, self.dropout, self.training)
        return self.dense_1(values)

    def packed_logits(self, parameters: Parameters, inputs: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return [K, B, C] for K trials."""
        groups = packed.grouped(inputs)
        for layer in ("conv_0", "conv_1"):
            weight, bias = parameters[f"{layer}.weight"], parameters[f"{layer}.bias"]
            groups = F.max_pool2d(packed.conv2d(groups, weight, bias), 2).relu()
        values = packed.ungrouped(groups, len(inputs))
        values = packed.linear(values, parameters["dense_0.weight"], parameters["dense_0.bias"]).relu_()
        if masks is not None:
            values = values * masks
        return packed.linear(values, parameters["dense_1.weight"], parameters["dense_1.bias"])

    def draw_masks(self, noise: np.random.Generator, batch_size: int) -> np.ndarray:
        """Return the hidden layer's mask [B, hidden], scaled so that its mean is 1."""
        keep = 1 - self.dropout
        return (noise.random((batch_size, self.hidden), np.float32) < keep).astype(np.float32) / np.float32(keep)
