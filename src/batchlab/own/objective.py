"""A loss and metrics of the user's own, for K trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from batchlab.engine.objectives import Scores
from batchlab.errors import TrainerError

Measure = Callable[[Tensor, Tensor], Tensor]
"""From outputs [B, ...] and labels [B, ...] to one number."""


class OwnObjective:
    """A loss that is the mean over a batch, and metrics of a whole split by name; `loss` is always among them."""

    is_per_token = False

    def __init__(self, loss: Measure, metrics: Mapping[str, Measure]) -> None:
        self._loss, self._metrics = loss, dict(metrics)

    def loss_sums(self, logits: Tensor, labels: Tensor, smoothing: Tensor | None = None) -> Tensor:
        """Return the loss [K] of each trial's batch times its number of examples."""
        is_one = len(logits) == 1
        losses = self._loss(logits[0], labels[0]).unsqueeze(0) if is_one else vmap(self._loss)(logits, labels)
        if losses.shape != (len(logits),):
            shape = tuple(losses.shape[1:])
            raise TrainerError(f"The loss of a batch is a tensor of shape {shape}, not one number: take its mean.")
        return losses * labels.shape[1]

    def scores(self, num_trials: int) -> Scores:
        """Return an empty collection of outputs."""
        return _OwnScores({"loss": self._loss, **self._metrics})


class _OwnScores:
    """Keeps all outputs: a metric need not be a mean over examples."""

    def __init__(self, measures: Mapping[str, Measure]) -> None:
        self._measures, self._outputs, self._labels = measures, list[Tensor](), list[Tensor]()

    def add(self, logits: Tensor, labels: Tensor) -> None:
        self._outputs.append(logits)
        self._labels.append(labels)

    def metrics(self) -> dict[str, np.ndarray]:
        outputs, labels = torch.cat(self._outputs, dim=1), torch.cat(self._labels)
        return {
            name: np.array([_number(name, measure(each, labels)) for each in outputs])
            for name, measure in self._measures.items()
        }


def _number(name: str, value: object) -> float:
    if isinstance(value, Tensor) and value.numel() != 1:
        raise TrainerError(f"{name} is a tensor of shape {tuple(value.shape)}, not one number: take its mean.")
    return float(value)  # type: ignore[arg-type]
