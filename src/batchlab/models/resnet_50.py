"""ResNet-50: pre-activation bottleneck blocks with ghost batch normalisation, and its smaller siblings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from batchlab.models.averages import RunningAverages
from batchlab.models.base import Parameters, ParameterShape, SingleTrialModel
from batchlab.models.convolution import channels_last, conv2d_single, conv_shapes, count_multiplications, halved
from batchlab.models.fully_connected import dense_shapes
from batchlab.models.ghost_norm import ghost_norm, norm_shapes

LARGE_SIDE = 64
"""Images with both sides at least this long get the stem that divides their sides by four."""


@dataclass(frozen=True)
class Block:
    """One bottleneck block: 1x1, 3x3 and 1x1 convolutions, each after a normalisation and ReLU."""

    name: str
    num_inputs: int
    width: int
    stride: int

    @property
    def num_outputs(self) -> int:
        """Four times the width of the bottleneck."""
        return 4 * self.width

    @property
    def has_projection(self) -> bool:
        """Whether the shape changes, so that the shortcut is a 1x1 convolution."""
        return self.stride > 1 or self.num_inputs != self.num_outputs

    @property
    def norms(self) -> dict[str, int]:
        """The normalised layers and their channels."""
        return {
            f"{self.name}.norm_0": self.num_inputs,
            f"{self.name}.norm_1": self.width,
            f"{self.name}.norm_2": self.width,
        }

    @property
    def shapes(self) -> dict[str, ParameterShape]:
        """The parameters by name."""
        shapes = conv_shapes(f"{self.name}.conv_0", 1, self.num_inputs, self.width, has_bias=False)
        shapes |= conv_shapes(f"{self.name}.conv_1", 3, self.width, self.width, has_bias=False)
        shapes |= conv_shapes(f"{self.name}.conv_2", 1, self.width, self.num_outputs, has_bias=False)
        if self.has_projection:
            shapes |= conv_shapes(f"{self.name}.projection", 1, self.num_inputs, self.num_outputs, has_bias=False)
        for name, num_channels in self.norms.items():
            shapes |= norm_shapes(name, num_channels)
        return shapes

    def pixels(self, before: int, after: int) -> dict[str, int]:
        """Return the output pixels of each layer, for so many before and after the strided convolution."""
        early = dict.fromkeys((f"{self.name}.{layer}" for layer in ("norm_0", "conv_0", "norm_1")), before)
        late = (f"{self.name}.{layer}" for layer in ("conv_1", "norm_2", "conv_2", "projection"))
        return early | dict.fromkeys(late, after)


class ResNet50(SingleTrialModel):
    """Stages of bottleneck blocks, `width` channels wide in the first and twice as wide in each that follows.

    Stages after the first halve the sides, in the 3x3 convolution of their first block. Where the shape changes, the
    shortcut is a 1x1 convolution of the block's normalised input. After the last block: normalisation, ReLU, global
    average pooling and a softmax output layer. Convolutions have no biases; normalisations shift.

    Large images (sides of 64 and more) start with a 7x7 convolution and a 3x3 max pooling, both with stride 2;
    smaller ones with a 3x3 convolution of stride 1 and no pooling.
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        num_classes: int,
        blocks: Sequence[int],
        width: int,
        ghost_size: int,
    ) -> None:
        self.ghost_size = ghost_size
        self.is_large = min(input_shape[1:]) >= LARGE_SIDE
        self.blocks = _blocks(blocks, width)
        num_features = self.blocks[-1].num_outputs
        self.normalised = {name: size for block in self.blocks for name, size in block.norms.items()}
        self.normalised |= {"norm": num_features}
        self.shapes: dict[str, ParameterShape] = conv_shapes(
            "conv", 7 if self.is_large else 3, input_shape[0], width, has_bias=False
        )
        for block in self.blocks:
            self.shapes |= block.shapes
        self.shapes |= norm_shapes("norm", num_features) | dense_shapes("dense", num_features, num_classes)
        self.multiplications = count_multiplications(self.shapes, self._pixels(*input_shape[1:]))

    def forward(self, parameters: Parameters, inputs: Tensor, averages: RunningAverages | None) -> Tensor:
        """Return [B, C]."""
        values = conv2d_single(channels_last(inputs), parameters["conv.weight"], stride=2 if self.is_large else 1)
        if self.is_large:
            values = F.max_pool2d(values, 3, stride=2, padding=1)
        for block in self.blocks:
            values = self._bottleneck(block, parameters, values, averages)
        pooled = self._activate("norm", parameters, values, averages).mean((2, 3))
        return F.linear(pooled, parameters["dense.weight"], parameters["dense.bias"])

    def _bottleneck(
        self, block: Block, parameters: Parameters, inputs: Tensor, averages: RunningAverages | None
    ) -> Tensor:
        values = activated = self._activate(f"{block.name}.norm_0", parameters, inputs, averages)
        values = conv2d_single(values, parameters[f"{block.name}.conv_0.weight"])
        values = self._activate(f"{block.name}.norm_1", parameters, values, averages)
        values = conv2d_single(values, parameters[f"{block.name}.conv_1.weight"], stride=block.stride)
        values = self._activate(f"{block.name}.norm_2", parameters, values, averages)
        values = conv2d_single(values, parameters[f"{block.name}.conv_2.weight"])
        if not block.has_projection:
            return values + inputs
        return values + conv2d_single(activated, parameters[f"{block.name}.projection.weight"], stride=block.stride)

    def _activate(self, layer: str, parameters: Parameters, values: Tensor, averages: RunningAverages | None) -> Tensor:
        assert averages is not None, "a normalised model is given its running averages"
        scale, shift = parameters[f"{layer}.scale"], parameters[f"{layer}.shift"]
        return ghost_norm(values, scale, shift, layer, averages, self.ghost_size).relu()

    def _pixels(self, height: int, width: int) -> dict[str, int]:
        """Return the output pixels of each layer."""
        if self.is_large:
            height, width = halved(height), halved(width)
        pixels = {"conv": height * width}
        if self.is_large:
            height, width = halved(height), halved(width)
        for block in self.blocks:
            before = height * width
            if block.stride > 1:
                height, width = halved(height), halved(width)
            pixels |= block.pixels(before, height * width)
        return pixels | {"norm": height * width}


def _blocks(num_blocks: Sequence[int], width: int) -> list[Block]:
    blocks: list[Block] = []
    for stage, number in enumerate(num_blocks):
        for index in range(number):
            num_inputs = blocks[-1].num_outputs if blocks else width
            stride = 2 if stage > 0 and index == 0 else 1
            blocks.append(Block(f"stage_{stage}.block_{index}", num_inputs, width * 2**stage, stride))
    return blocks
