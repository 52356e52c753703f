"""Running averages of the means and variances that batch normalisation sees while training, for its evaluation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

KEEP = 0.9
"""The share of the running average that an update keeps; the rest is the average over the ghosts of the batch."""


class RunningAverages:
    """The running mean and variance of every normalised layer of one trial.

    Between `start` and `commit` the model trains: each forward pass tells the statistics of its ghosts with `add`, and
    `commit` makes one update from all of them. So the averages are the same whether a batch is computed at once or in
    pieces. At all other times a forward pass uses the averages.
    """

    def __init__(self, layers: Mapping[str, int], device: torch.device | None = None) -> None:
        self.is_training = False
        self.means = {name: torch.zeros(size, device=device) for name, size in layers.items()}
        self.variances = {name: torch.ones(size, device=device) for name, size in layers.items()}
        self._sums: dict[str, tuple[Tensor, Tensor, int]] = {}

    def start(self) -> None:
        """Begin a training step, forgetting one that was not finished."""
        self._sums.clear()
        self.is_training = True

    @torch.no_grad()
    def add(self, layer: str, means: Tensor, variances: Tensor) -> None:
        """Take note of the statistics [G, C] of G ghosts of one layer."""
        mean, variance, count = self._sums.get(layer, (0, 0, 0))
        self._sums[layer] = mean + means.sum(0), variance + variances.sum(0), count + len(means)

    def commit(self) -> None:
        """End a training step: update the averages from everything that was added."""
        for layer, (mean, variance, count) in self._sums.items():
            self.means[layer].mul_(KEEP).add_(mean / count, alpha=1 - KEEP)
            self.variances[layer].mul_(KEEP).add_(variance / count, alpha=1 - KEEP)
        self._sums.clear()
        self.is_training = False

    def state(self) -> dict[str, np.ndarray]:
        """Return the averages as arrays."""
        named = {f"{layer}.mean": mean for layer, mean in self.means.items()}
        named |= {f"{layer}.variance": variance for layer, variance in self.variances.items()}
        return {name: values.cpu().numpy().copy() for name, values in named.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from what `state` returned."""
        for layer in self.means:
            self.means[layer].copy_(torch.from_numpy(state[f"{layer}.mean"]))
            self.variances[layer].copy_(torch.from_numpy(state[f"{layer}.variance"]))
