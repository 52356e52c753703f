"""ResNet-50: pre-activation bottleneck blocks with ghost batch normalisation, and its smaller siblings."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from batchlab.models.base import Network
from batchlab.models.ghost_norm import GhostNorm
from batchlab.models.layers import Convolution, Dense, channels_last

LARGE_SIDE = 64
"""Images with both sides at least this long get the stem that divides their sides by four."""


class ResNet50(Network):
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
        super().__init__()
        self.ghost_size = ghost_size
        self.is_large = min(input_shape[1:]) >= LARGE_SIDE
        kernel, stride = (7, 2) if self.is_large else (3, 1)
        self.conv = Convolution(kernel, input_shape[0], width, stride, has_bias=False)
        channels, self.blocks = width, list[_Bottleneck]()
        for stage, num_blocks in enumerate(blocks):
            made: dict[str, nn.Module] = {}
            for index in range(num_blocks):
                stride = 2 if stage > 0 and index == 0 else 1
                made[f"block_{index}"] = block = _Bottleneck(channels, width * 2**stage, stride, ghost_size)
                self.blocks.append(block)
                channels = block.num_outputs
            self.add_module(f"stage_{stage}", nn.ModuleDict(made))
        self.norm = GhostNorm(channels, ghost_size)
        self.dense = Dense(channels, num_classes)
        self._norms = [module for module in self.modules() if isinstance(module, GhostNorm)]

    def forward(self, images: Tensor) -> Tensor:
        """Return [B, C] for images [B, channels, height, width]."""
        values = self.conv(channels_last(images))
        if self.is_large:
            values = F.max_pool2d(values, 3, stride=2, padding=1)
        for block in self.blocks:
            values = block(values)
        return self.dense(self.norm(values).relu().mean((2, 3)))

    def begin_step(self) -> None:
        """Make every normalisation ready for a training step."""
        for norm in self._norms:
            norm.begin_step()

    def end_step(self) -> None:
        """Update all running averages, once."""
        for norm in self._norms:
            norm.end_step()


class _Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions, each after a normalisation and ReLU; four times as many channels come out."""

    def __init__(self, num_inputs: int, width: int, stride: int, ghost_size: int) -> None:
        super().__init__()
        self.num_outputs = 4 * width
        self.conv_0 = Convolution(1, num_inputs, width, has_bias=False)
        self.conv_1 = Convolution(3, width, width, stride, has_bias=False)
        self.conv_2 = Convolution(1, width, self.num_outputs, has_bias=False)
        self.projection: Convolution | None = None
        if stride > 1 or num_inputs != self.num_outputs:
            self.projection = Convolution(1, num_inputs, self.num_outputs, stride, has_bias=False)
        self.norm_0 = GhostNorm(num_inputs, ghost_size)
        self.norm_1 = GhostNorm(width, ghost_size)
        self.norm_2 = GhostNorm(width, ghost_size)

    def forward(self, inputs: Tensor) -> Tensor:
        activated = self.norm_0(inputs).relu()
        values = self.norm_1(self.conv_0(activated)).relu()
        values = self.norm_2(self.conv_1(values)).relu()
        shortcut = inputs if self.projection is None else self.projection(activated)
        return self.conv_2(values) + shortcut
