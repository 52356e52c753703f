"""Ghost batch normalisation: batch normalisation whose statistics come from small groups of a batch.

Each ghost, a group of consecutive examples, is normalised by its own mean and variance, so that the training
objective is the same at every batch size. Evaluation uses running averages of both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from batchlab.models.base import Layer, fill_constant, parameter
from batchlab.models.transforms import gradients, is_transformed

EPSILON = 1e-5
"""Added to a variance before its root is taken."""

KEEP = 0.9
"""The share of the running average that an update keeps; the rest is the average over the ghosts of the batch."""


class GhostNorm(Layer):
    """Normalises each ghost and channel of [B, C, H, W], then scales and shifts.

    While training, ghosts are `ghost_size` consecutive examples; the last B mod `ghost_size` form a smaller one of
    their own, and so does a batch that is smaller than a ghost. So a batch may be computed in microbatches, with the
    same result, if the ghost size divides each but the last: between `begin_step` and `end_step` the statistics of all
    ghosts are added up, and the running averages are updated once.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, num_channels: int, ghost_size: int) -> None:
        super().__init__()
        self.ghost_size = ghost_size
        self.scale, self.shift = parameter(num_channels), parameter(num_channels)
        self.register_buffer("mean", torch.zeros(num_channels))
        self.register_buffer("variance", torch.ones(num_channels))
        self._sums: tuple[Tensor, Tensor] | None = None
        self._count = 0
        self._begin_plain()  # in a module of somebody else's nobody calls `start`

    def start(self, init: np.random.Generator) -> None:
        """Begin as the plain normalisation."""
        self._begin_plain()

    def _begin_plain(self) -> None:
        fill_constant(self.scale, 1.0)
        fill_constant(self.shift)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the inputs, normalised for each ghost and channel, times scale [C] plus shift [C]."""
        if not self.training:
            mean, variance = self.mean.to(self.scale.dtype), self.variance.to(self.scale.dtype)
            return F.batch_norm(inputs, mean, variance, self.scale, self.shift, eps=EPSILON)
        remainder = len(inputs) % self.ghost_size
        parts = [part for part in inputs.split([len(inputs) - remainder, remainder]) if len(part) > 0]
        outputs = [self._normalise(part, min(self.ghost_size, len(part))) for part in parts]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    def _normalise(self, inputs: Tensor, ghost_size: int) -> Tensor:
        pixels = inputs.permute(0, 2, 3, 1)  # [B, H, W, C]
        ghosts = pixels.reshape(len(inputs) // ghost_size, -1, inputs.shape[1])  # [G, pixels of a ghost, C]
        if is_transformed():
            outputs = _normalised(ghosts.to(self.scale.dtype), self.scale, self.shift).to(ghosts.dtype)
        else:
            outputs, means, variances = _GhostNorm.apply(ghosts, self.scale, self.shift)
            self._add(means.squeeze(1), variances.squeeze(1))
        return outputs.reshape(pixels.shape).permute(0, 3, 1, 2)

    @torch.no_grad()
    def _add(self, means: Tensor, variances: Tensor) -> None:
        """Take note of the statistics [G, C] of G ghosts."""
        sums = means.sum(0), variances.sum(0)
        self._sums = sums if self._sums is None else (self._sums[0] + sums[0], self._sums[1] + sums[1])
        self._count += len(means)

    @property
    def told(self) -> Tensor:
        """What the ghosts since the step began told, [2 C + 1]: sums of their means and variances, and their number."""
        means, variances = self._sums or (torch.zeros_like(self.scale), torch.zeros_like(self.scale))
        return torch.cat([means, variances, means.new_tensor([self._count])])

    @told.setter
    def told(self, told: Tensor) -> None:
        *sums, count = told.split([len(self.scale), len(self.scale), 1])
        self._sums, self._count = (sums[0], sums[1]), int(count)

    def begin_step(self) -> None:
        """Begin a training step, forgetting one that was not finished."""
        self._sums, self._count = None, 0

    @torch.no_grad()
    def end_step(self) -> None:
        """Update the running averages from every ghost since the step began."""
        if self._sums is not None:
            self.mean.mul_(KEEP).add_(self._sums[0] / self._count, alpha=1 - KEEP)
            self.variance.mul_(KEEP).add_(self._sums[1] / self._count, alpha=1 - KEEP)
        self.begin_step()


def _normalised(inputs: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Return [G, N, C] normalised over N: the plain formula, which can be differentiated any number of times."""
    centred = inputs - inputs.mean(1, keepdim=True)
    inverse_deviation = (centred.square().mean(1, keepdim=True) + EPSILON).rsqrt()
    return shift + centred * (scale * inverse_deviation)


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
        ctx.save_for_backward(inputs, scale, shift, mean, inverse_deviation)
        ctx.mark_non_differentiable(mean, variance)
        return torch.addcmul(shift, centred, scale * inverse_deviation).to(inputs.dtype), mean, variance

    @staticmethod
    def backward(ctx: Any, *output_gradients: Tensor) -> tuple[Tensor | None, ...]:
        inputs, scale, shift, mean, inverse_deviation = ctx.saved_tensors
        outputs = output_gradients[0].to(scale.dtype)
        found = _GhostNorm._gradients(inputs, scale, mean, inverse_deviation, outputs.detach())
        if not torch.is_grad_enabled():
            return found
        # Mean and deviation are saved as numbers: a second derivative through them would be wrong.
        plain = _normalised(inputs.to(scale.dtype), scale, shift)
        graphs = gradients(plain, (inputs, scale, shift), (outputs,), create_graph=True)
        return tuple(
            None if graph is None else each + (graph - graph.detach())
            for each, graph in zip(found, graphs, strict=True)
        )

    @staticmethod
    @torch.no_grad()
    def _gradients(
        inputs: Tensor, scale: Tensor, mean: Tensor, inverse_deviation: Tensor, outputs: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients with respect to inputs, scale and shift, for those with respect to the outputs."""
        normalised = (inputs.to(scale.dtype) - mean).mul_(inverse_deviation)
        to_shift = outputs.sum(1, keepdim=True)  # of each ghost, [G, 1, C]
        to_scale = (outputs * normalised).sum(1, keepdim=True)
        size = inputs.shape[1]
        to_inputs = torch.addcmul(outputs - to_shift / size, normalised, to_scale / -size)
        to_inputs = to_inputs.mul_(scale * inverse_deviation)
        return to_inputs.to(inputs.dtype), to_scale.sum((0, 1)), to_shift.sum((0, 1))
