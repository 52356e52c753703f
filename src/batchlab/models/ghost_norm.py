"""Ghost batch normalisation: batch normalisation whose statistics come from small groups of a batch.

Each ghost, a group of consecutive examples, is normalised by its own mean and variance, so that the training
objective is the same at every batch size.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from batchlab.models.averages import RunningAverages
from batchlab.models.base import ParameterShape
from batchlab.models.once import once_differentiable

EPSILON = 1e-5
"""Added to a variance before its root is taken."""


def norm_shapes(name: str, num_channels: int) -> dict[str, ParameterShape]:
    """Return the scale, which starts at 1, and the shift of one normalisation."""
    return {
        f"{name}.scale": ParameterShape((num_channels,), constant=1.0),
        f"{name}.shift": ParameterShape((num_channels,)),
    }


def ghost_norm(
    inputs: Tensor, scale: Tensor, shift: Tensor, layer: str, averages: RunningAverages, ghost_size: int
) -> Tensor:
    """Return inputs [B, C, H, W] normalised for each ghost and channel, times scale [C] plus shift [C].

    While training, ghosts are `ghost_size` consecutive examples; the last B mod `ghost_size` form a smaller one of
    their own, and so does a batch that is smaller than a ghost. Their statistics are added to `averages`. Otherwise
    the running averages stand in for them. So a batch may be computed in pieces, with the same result, if the ghost
    size divides every piece but the last.
    """
    if not averages.is_training:
        mean, variance = averages.means[layer].to(scale.dtype), averages.variances[layer].to(scale.dtype)
        return F.batch_norm(inputs, mean, variance, scale, shift, eps=EPSILON)
    remainder = len(inputs) % ghost_size
    parts = [part for part in inputs.split([len(inputs) - remainder, remainder]) if len(part) > 0]
    outputs = [_normalise(part, scale, shift, layer, averages, min(ghost_size, len(part))) for part in parts]
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def _normalise(
    inputs: Tensor, scale: Tensor, shift: Tensor, layer: str, averages: RunningAverages, ghost_size: int
) -> Tensor:
    pixels = inputs.permute(0, 2, 3, 1)  # [B, H, W, C]
    ghosts = pixels.reshape(len(inputs) // ghost_size, -1, inputs.shape[1])  # [G, pixels of a ghost, C]
    outputs, means, variances = _GhostNorm.apply(ghosts, scale, shift)
    averages.add(layer, means.squeeze(1), variances.squeeze(1))
    return outputs.reshape(pixels.shape).permute(0, 3, 1, 2)


class _GhostNorm(torch.autograd.Function):
    """Normalise [G, N, C] over N; returns the outputs and the statistics [G, 1, C].

    Written out because autograd keeps and re-reads every intermediate: that takes twice as long. Statistics have
    the precision of the parameters, even where the inputs are bfloat16.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, scale: Tensor, shift: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        values = inputs.to(scale.dtype)
        mean = values.mean(1, keepdim=True)
        centred = values - mean
        variance = centred.square().mean(1, keepdim=True)
        inverse_deviation = (variance + EPSILON).rsqrt()
        ctx.save_for_backward(inputs, mean, inverse_deviation, scale)
        ctx.mark_non_differentiable(mean, variance)
        return torch.addcmul(shift, centred, scale * inverse_deviation).to(inputs.dtype), mean, variance

    @staticmethod
    @once_differentiable  # mean and deviation are saved as numbers: a second derivative would be wrong
    def backward(ctx: Any, *output_gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        inputs, mean, inverse_deviation, scale = ctx.saved_tensors
        outputs = output_gradients[0].to(scale.dtype)
        normalised = (inputs.to(scale.dtype) - mean).mul_(inverse_deviation)
        to_shift = outputs.sum(1, keepdim=True)  # of each ghost, [G, 1, C]
        to_scale = (outputs * normalised).sum(1, keepdim=True)
        size = inputs.shape[1]
        to_inputs = torch.addcmul(outputs - to_shift / size, normalised, to_scale / -size)
        to_inputs = to_inputs.mul_(scale * inverse_deviation)
        return to_inputs.to(inputs.dtype), to_scale.sum((0, 1)), to_shift.sum((0, 1))
