"""What a model is trained for and judged by: one objective for each task.

A batch's loss is a sum over its examples, or over its tokens, divided by their number. Sums and numbers are kept
apart, so that a batch that is computed in microbatches has exactly the loss and the gradient of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from batchlab.core.tokens import PADDING
from batchlab.data.base import Task


class Scores(Protocol):
    """Metrics of K trials in the making."""

    def add(self, logits: Tensor, labels: Tensor) -> None:
        """Take in the logits [K, B, ...] of some examples and their labels [B, ...]."""
        ...

    def metrics(self) -> dict[str, np.ndarray]:
        """Return name -> [K] float64."""
        ...


class Objective(Protocol):
    """The loss of a task, and its metrics."""

    is_per_token: bool
    """Whether a batch's loss is averaged over its tokens, not its examples."""

    def loss_sums(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return [K]: the sums of the losses."""
        ...

    def scores(self, num_trials: int) -> Scores:
        """Return an empty sum of metrics."""
        ...


class Classification:
    """One class for each example: cross entropy (nats), and the share of wrong answers."""

    is_per_token = False

    def loss_sums(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the sums of the cross entropies."""
        return cross_entropies(logits, labels).sum(1)

    def smoothed_loss_sums(self, logits: Tensor, labels: Tensor, smoothing: Tensor) -> Tensor:
        """Return the sums of the cross entropies with labels that are smoothed by `smoothing` [K, 1]."""
        return smoothed_cross_entropies(logits, labels, smoothing).sum(1)

    def scores(self, num_trials: int) -> Scores:
        """Return an empty sum."""
        return _ClassificationScores(num_trials)


class LanguageModel:
    """Every next token of a sentence: cross entropy (nats) per token. Padding is never counted."""

    is_per_token = True

    def loss_sums(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the sums of the tokens' cross entropies."""
        losses = F.cross_entropy(logits.flatten(0, 2), labels.flatten().long(), ignore_index=PADDING, reduction="none")
        return losses.view(len(labels), -1).sum(1)

    def scores(self, num_trials: int) -> Scores:
        """Return an empty sum."""
        return _TokenScores(self, num_trials)


class MultiLabel:
    """Any number of classes for each example: a yes or no for each, the mean of their cross entropies (nats).

    Average precision is that of scikit-learn over all pairs of an example and a class.
    """

    is_per_token = False

    def loss_sums(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the sums of the examples' losses."""
        losses = F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none")
        return losses.mean(2).sum(1)

    def scores(self, num_trials: int) -> Scores:
        """Return an empty sum."""
        return _MultiLabelScores(self, num_trials)


OBJECTIVES: dict[Task, Objective] = {
    "classification": Classification(),
    "language_model": LanguageModel(),
    "multi_label": MultiLabel(),
}


def count_tokens(labels: Tensor) -> Tensor:
    """Return [K]: how many tokens of sentences [K, B, T] are no padding."""
    return (labels != PADDING).sum((1, 2)).float()


def cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross entropy of every example: [K, B] for logits [K, B, C] and labels [K, B]."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)


def smoothed_cross_entropies(logits: Tensor, labels: Tensor, smoothing: Tensor) -> Tensor:
    """Return [K, B] with labels smoothed by `smoothing` [K, 1], in the paper's convention.

    The true class gets 1 - s and each of the other C - 1 classes s / (C - 1): not the mixture with the uniform
    distribution over all C classes.
    """
    logs = logits.log_softmax(2)
    true = logs.gather(2, labels.unsqueeze(2)).squeeze(2)
    others = logs.sum(2) - true
    return -(1 - smoothing) * true - smoothing / (logits.shape[2] - 1) * others


class _ClassificationScores:
    def __init__(self, num_trials: int) -> None:
        self._entropy, self._wrong = np.zeros(num_trials), np.zeros(num_trials)
        self._count = 0

    def add(self, logits: Tensor, labels: Tensor) -> None:
        self._entropy += cross_entropies(logits, labels.expand(len(logits), -1)).double().sum(1).cpu().numpy()
        # A trial whose logits are not numbers is right about nothing; argmax alone would pick a class.
        right = (logits.argmax(2) == labels) & logits.isfinite().all(2)
        self._wrong += (~right).sum(1).cpu().numpy()
        self._count += len(labels)

    def metrics(self) -> dict[str, np.ndarray]:
        return {"cross_entropy_error": self._entropy / self._count, "classification_error": self._wrong / self._count}


class _TokenScores:
    def __init__(self, objective: LanguageModel, num_trials: int) -> None:
        self._objective = objective
        self._entropy, self._count = np.zeros(num_trials), np.zeros(num_trials)

    def add(self, logits: Tensor, labels: Tensor) -> None:
        labels = labels.expand(len(logits), *labels.shape)
        self._entropy += self._objective.loss_sums(logits, labels).double().cpu().numpy()
        self._count += count_tokens(labels).cpu().numpy()

    def metrics(self) -> dict[str, np.ndarray]:
        return {"cross_entropy_error": self._entropy / self._count}


class _MultiLabelScores:
    def __init__(self, objective: MultiLabel, num_trials: int) -> None:
        self._objective = objective
        self._entropy, self._count = np.zeros(num_trials), 0
        self._positives: list[np.ndarray] = []
        self._negatives: list[np.ndarray] = []

    def add(self, logits: Tensor, labels: Tensor) -> None:
        expanded = labels.expand(len(logits), *labels.shape)
        self._entropy += self._objective.loss_sums(logits, expanded).double().cpu().numpy()
        self._count += len(labels)
        scores, is_positive = logits.cpu().numpy(), labels.cpu().numpy() > 0
        self._positives.append(scores[:, is_positive])
        self._negatives.append(scores[:, ~is_positive])

    def metrics(self) -> dict[str, np.ndarray]:
        positives = np.concatenate(self._positives, axis=1)
        precisions = [
            average_precision(row, [chunk[trial] for chunk in self._negatives]) for trial, row in enumerate(positives)
        ]
        return {"cross_entropy_error": self._entropy / self._count, "average_precision": np.array(precisions)}


def average_precision(positives: np.ndarray, negatives: Sequence[np.ndarray]) -> float:
    """Return scikit-learn's average precision of the scores of positive pairs and, in chunks, of negative ones.

    NaN where they are not numbers or nothing is positive. Between two scores of positives only the number of negatives
    matters, so that scikit-learn is given that number: its own sorting of all pairs takes 68 bytes for each.
    """
    from sklearn.metrics import average_precision_score

    if len(positives) == 0 or not all(np.isfinite(scores).all() for scores in (positives, *negatives)):
        return float("nan")
    thresholds, num_positives = np.unique(positives, return_counts=True)
    places = np.zeros(len(thresholds) + 1, np.int64)  # of negatives: below all thresholds, at or above the first, ...
    for scores in negatives:
        places += np.bincount(np.searchsorted(thresholds, scores, "right"), minlength=len(places))
    is_positive = np.repeat([1, 0], len(thresholds))
    weights = np.concatenate([num_positives, places[1:]])
    return float(average_precision_score(is_positive, np.tile(thresholds, 2), sample_weight=weights))
