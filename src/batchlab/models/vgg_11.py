"""VGG-11: configuration A of Simonyan and Zisserman, eight 3x3 convolutions and three dense layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from batchlab.models.averages import RunningAverages
from batchlab.models.base import Parameters, ParameterShape, SingleTrialModel
from batchlab.models.convolution import channels_last, conv2d_single, conv_shapes, count_multiplications
from batchlab.models.fully_connected import dense_shapes

POOLED = (0, 1, 3, 5, 7)
"""The convolutions that end a group and are followed by 2x2 max pooling."""


class Vgg11(SingleTrialModel):
    """Convolutions with the given filters and ReLU, then two dense layers of `hidden` units and a softmax output.

    There is no normalisation and no dropout: the paper's use of the latter could not be confirmed. Images may be
    small: pooling is left out once a side is 1. The weights start Glorot-uniform, as the authors of the network found
    to be enough; on small images, where most of a kernel meets only padding, the logits start all but equal, and
    training starts with a plateau.
    """

    def __init__(self, input_shape: Sequence[int], num_classes: int, filters: Sequence[int], hidden: int) -> None:
        channels, height, width = input_shape
        self.num_convolutions = len(filters)
        self.shapes: dict[str, ParameterShape] = {}
        pixels = {}
        for layer, num_filters in enumerate(filters):
            self.shapes |= conv_shapes(f"conv_{layer}", 3, channels, num_filters)
            pixels[f"conv_{layer}"] = height * width
            channels = num_filters
            if layer in POOLED and min(height, width) > 1:
                height, width = height // 2, width // 2
        self.shapes |= dense_shapes("dense_0", channels * height * width, hidden)
        self.shapes |= dense_shapes("dense_1", hidden, hidden)
        self.shapes |= dense_shapes("dense_2", hidden, num_classes)
        self.multiplications = count_multiplications(self.shapes, pixels)

    def forward(self, parameters: Parameters, inputs: Tensor, averages: RunningAverages | None) -> Tensor:
        """Return [B, C]."""
        values = channels_last(inputs)
        for layer in range(self.num_convolutions):
            values = conv2d_single(values, parameters[f"conv_{layer}.weight"], parameters[f"conv_{layer}.bias"])
            if layer in POOLED and min(values.shape[2:]) > 1:
                # Pooling first gives the same values as ReLU first, with a quarter of the work.
                values = F.max_pool2d(values, 2)
            values = values.relu()
        values = values.flatten(1)
        for name in ("dense_0", "dense_1"):
            values = F.linear(values, parameters[f"{name}.weight"], parameters[f"{name}.bias"]).relu_()
        return F.linear(values, parameters["dense_2.weight"], parameters["dense_2.bias"])
