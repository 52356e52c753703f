"""ResNet-8: the smallest residual network for CIFAR images, without any normalisation."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from batchlab.models.averages import RunningAverages
from batchlab.models.base import Parameters, ParameterShape, SingleTrialModel
from batchlab.models.convolution import channels_last, conv2d_single, conv_shapes, count_multiplications, halved
from batchlab.models.fully_connected import dense_shapes


class ResNet8(SingleTrialModel):
    """A 3x3 convolution, three stages of one residual block, global average pooling and a softmax output layer.

    A block is ReLU, 3x3 convolution, ReLU, 3x3 convolution ("pre-activation"). Stages two and three halve the sides.
    Seven convolutions and one dense layer: so the shortcuts have no parameters. Where the shape changes they take
    every second pixel and fill the new channels with zeros (option A of He et al. 2016). The convolutions have
    biases, because nothing else shifts their outputs.
    """

    def __init__(self, input_shape: Sequence[int], num_classes: int, filters: Sequence[int]) -> None:
        channels, height, width = input_shape
        self.filters = tuple(filters)
        self.shapes: dict[str, ParameterShape] = conv_shapes("conv", 3, channels, self.filters[0])
        pixels, channels = {"conv": height * width}, self.filters[0]
        for stage, num_filters in enumerate(self.filters):
            if stage > 0:
                height, width = halved(height), halved(width)
            self.shapes |= conv_shapes(f"stage_{stage}.conv_0", 3, channels, num_filters)
            self.shapes |= conv_shapes(f"stage_{stage}.conv_1", 3, num_filters, num_filters)
            pixels |= {f"stage_{stage}.conv_{layer}": height * width for layer in (0, 1)}
            channels = num_filters
        self.shapes |= dense_shapes("dense", channels, num_classes)
        self.multiplications = count_multiplications(self.shapes, pixels)

    def forward(self, parameters: Parameters, inputs: Tensor, averages: RunningAverages | None) -> Tensor:
        """Return [B, C]."""
        values = conv2d_single(channels_last(inputs), parameters["conv.weight"], parameters["conv.bias"])
        for stage in range(len(self.filters)):
            values = _block(parameters, f"stage_{stage}", values, stride=1 if stage == 0 else 2)
        pooled = values.relu().mean((2, 3))
        return F.linear(pooled, parameters["dense.weight"], parameters["dense.bias"])


def _block(parameters: Parameters, name: str, inputs: Tensor, stride: int) -> Tensor:
    values = inputs.relu()
    values = conv2d_single(values, parameters[f"{name}.conv_0.weight"], parameters[f"{name}.conv_0.bias"], stride)
    values = values.relu_()
    values = conv2d_single(values, parameters[f"{name}.conv_1.weight"], parameters[f"{name}.conv_1.bias"])
    return values + _shortcut(inputs, stride, values.shape[1])


def _shortcut(inputs: Tensor, stride: int, num_filters: int) -> Tensor:
    """Return every `stride`-th pixel, with channels of zeros up to `num_filters`."""
    if stride == 1 and num_filters == inputs.shape[1]:
        return inputs
    return F.pad(inputs[:, :, ::stride, ::stride], (0, 0, 0, 0, 0, num_filters - inputs.shape[1]))
