"""ResNet-8: the smallest residual network for CIFAR images, without any normalisation."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from batchlab.models.base import Network
from batchlab.models.layers import Convolution, Dense, channels_last


class ResNet8(Network):
    """A 3x3 convolution, three stages of one residual block, global average pooling and a softmax output layer.

    A block is ReLU, 3x3 convolution, ReLU, 3x3 convolution ("pre-activation"). Stages two and three halve the sides.
    Seven convolutions and one dense layer: so the shortcuts have no parameters. Where the shape changes they take
    every second pixel and fill the new channels with zeros (option A of He et al. 2016). The convolutions have
    biases, because nothing else shifts their outputs.
    """

    def __init__(self, input_shape: Sequence[int], num_classes: int, filters: Sequence[int]) -> None:
        super().__init__()
        channels = filters[0]
        self.conv = Convolution(3, input_shape[0], channels)
        self.stages: list[_Block] = []
        for stage, num_filters in enumerate(filters):
            block = _Block(channels, num_filters, stride=1 if stage == 0 else 2)
            self.add_module(f"stage_{stage}", block)
            self.stages.append(block)
            channels = num_filters
        self.dense = Dense(channels, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return [B, C] for images [B, channels, height, width]."""
        values = self.conv(channels_last(images))
        for block in self.stages:
            values = block(values)
        return self.dense(values.relu().mean((2, 3)))


class _Block(nn.Module):
    def __init__(self, num_inputs: int, num_filters: int, stride: int) -> None:
        super().__init__()
        self.stride, self.num_filters = stride, num_filters
        self.conv_0 = Convolution(3, num_inputs, num_filters, stride)
        self.conv_1 = Convolution(3, num_filters, num_filters)

    def forward(self, inputs: Tensor) -> Tensor:
        values = self.conv_1(self.conv_0(inputs.relu()).relu_())
        return values + self._shortcut(inputs)

    def _shortcut(self, inputs: Tensor) -> Tensor:
        """Return every `stride`-th pixel, with channels of zeros up to `num_filters`."""
        if self.stride == 1 and self.num_filters == inputs.shape[1]:
            return inputs
        strided = inputs[:, :, :: self.stride, :: self.stride]
        return F.pad(strided, (0, 0, 0, 0, 0, self.num_filters - inputs.shape[1]))
