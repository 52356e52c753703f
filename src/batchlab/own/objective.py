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

    def loss_sums(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss [K] of each trial's batch times its number of examples."""
        if len(logits) == 1:
            losses = self._loss_of_one(logits[0], labels[0]).unsqueeze(0)
        else:
            losses = vmap(self._loss_of_one)(logits, labels)
        return losses * labels.shape[1]

    def _loss_of_one(self, outputs: Tensor, labels: Tensor) -> Tensor:
        loss = self._loss(outputs, labels)
        if not isinstance(loss, Tensor):
            raise TrainerError(f"loss(outputs, labels) returned {type(loss).__name__}: return a tensor of one number.")
        if loss.shape != ():
            shape = tuple(loss.shape)
            raise TrainerError(f"The loss of a batch is a tensor of shape {shape}, not one number: take its mean.")
        if outputs.requires_grad and not loss.requires_grad:
            raise TrainerError("loss(outputs, labels) returned a loss without a gradient: compute it by the outputs.")
        return loss

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
        outputs, labels = _joined(self._outputs, 1), _joined(self._labels, 0)
        return {
            name: np.array([number_of(name, measure(each.clone(), labels.clone())) for each in outputs])
            for name, measure in self._measures.items()
        }


def _joined(chunks: list[Tensor], dimension: int) -> Tensor:
    try:
        return torch.cat(chunks, dimension)
    except RuntimeError:
        shapes = sorted({str(tuple(each.shape[dimension + 1 :])) for each in chunks})
        raise TrainerError(
            f"Outputs or labels of a split have different shapes, {' and '.join(shapes[:2])}: let `collate` make all "
            "batches of one shape, or give a `training_step`, whose metrics are averaged over batches."
        ) from None


def number_of(name: str, value: object) -> float:
    """Return a metric as a number."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise TrainerError(f"{name} is a tensor of shape {tuple(value.shape)}, not one number: take its mean.")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TrainerError(f"{name} is {type(value).__name__}, not one number.") from None
