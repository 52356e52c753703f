"""VGG-11: configuration A of Simonyan and Zisserman, eight 3x3 convolutions and three dense layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from batchlab.models.base import Network
from batchlab.models.layers import Convolution, Dense, channels_last

POOLED = (0, 1, 3, 5, 7)
"""The convolutions that end a group and are followed by 2x2 max pooling."""


class Vgg11(Network):
    """Convolutions with the given filters and ReLU, then two dense layers of `hidden` units and a softmax output.

    There is no normalisation and no dropout: the paper's use of the latter could not be confirmed. Images may be
    small: pooling is left out once a side is 1. The weights start Glorot-uniform, as the authors of the network found
    to be enough; on small images, where most of a kernel meets only padding, the logits start all but equal, and
    training starts with a plateau.
    """

    def __init__(self, input_shape: Sequence[int], num_classes: int, filters: Sequence[int], hidden: int) -> None:
        super().__init__()
        channels, height, width = input_shape
        self.convolutions: list[Convolution] = []
        for layer, num_filters in enumerate(filters):
            convolution = Convolution(3, channels, num_filters)
            self.add_module(f"conv_{layer}", convolution)
            self.convolutions.append(convolution)
            channels = num_filters
            if layer in POOLED and min(height, width) > 1:
                height, width = height // 2, width // 2
        self.dense_0 = Dense(channels * height * width, hidden)
        self.dense_1 = Dense(hidden, hidden)
        self.dense_2 = Dense(hidden, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return [B, C] for images [B, channels, height, width]."""
        values = channels_last(images)
        for layer, convolution in enumerate(self.convolutions):
            values = convolution(values)
            if layer in POOLED and min(values.shape[2:]) > 1:
                # Pooling first gives the same values as ReLU first, with a quarter of the work.
                values = F.max_pool2d(values, 2)
            values = values.relu()
        values = self.dense_0(values.flatten(1)).relu_()
        return self.dense_2(self.dense_1(values).relu_())
