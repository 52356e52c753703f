"""Metrics of K trials on a split, without side effects."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from batchlab.models.base import Model, Parameters

CHUNK_EXAMPLES = 250
"""Examples in one forward pass: enough to keep the matrix products busy, few enough to stay in cache."""


@torch.no_grad()
def evaluate(model: Model, parameters: Parameters, inputs: Tensor, labels: Tensor) -> dict[str, np.ndarray]:
    """Return the mean cross entropy (nats) and the share of wrong answers: name -> [K] float64."""
    num_trials = next(iter(parameters.values())).shape[0]
    cross_entropy = torch.zeros(num_trials, dtype=torch.float64, device=labels.device)
    wrong = torch.zeros(num_trials, dtype=torch.float64, device=labels.device)
    for some_inputs, some_labels in zip(inputs.split(CHUNK_EXAMPLES), labels.split(CHUNK_EXAMPLES), strict=True):
        logits = model.logits(parameters, some_inputs.expand(num_trials, *some_inputs.shape)).float()
        cross_entropy += cross_entropies(logits, some_labels.expand(num_trials, -1)).double().sum(1)
        # A trial whose logits are not numbers is right about nothing; argmax alone would pick a class.
        right = (logits.argmax(2) == some_labels) & logits.isfinite().all(2)
        wrong += (~right).sum(1)
    return {
        "cross_entropy_error": (cross_entropy / len(labels)).cpu().numpy(),
        "classification_error": (wrong / len(labels)).cpu().numpy(),
    }


def cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross entropy of every example: [K, B] for logits [K, B, C] and labels [K, B]."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)
