"""Metrics of K trials on a split, without side effects."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from batchlab.core.tokens import PADDING
from batchlab.engine.forward import Forward, in_dtype
from batchlab.engine.global_random import fork_rng, seed_all
from batchlab.engine.source import Source
from batchlab.models.base import Network

if TYPE_CHECKING:
    from batchlab.engine.problem import Problem

CHUNK_EXAMPLES = 250
"""Examples in one forward pass, at the most: enough to keep the matrix products busy, few enough to stay in cache."""

CHUNK_LOGITS = 1 << 21
"""Logits of one trial in one forward pass of sentences, at the most: there is one for each token and word."""

CHUNK_PIXELS = 1 << 22
"""Values in the images of one forward pass, at the most: 27 photographs of 224 x 224."""


@torch.no_grad()
def evaluate(problem: Problem, forward: Forward, split: Source) -> dict[str, np.ndarray]:
    """Return the task's metrics on a split: name -> [K] float64.

    A module that is none of ours may change what it is given, and draw at random: it has copies, and draws the same
    each time.
    """
    forward.train(False)
    if isinstance(forward.network, Network):
        return _metrics(problem, forward, split.chunks(_chunk_examples(problem, split)))
    with fork_rng(problem.device):
        seed_all(0)
        chunks = split.chunks(_chunk_examples(problem, split))
        return _metrics(problem, forward, ((inputs.clone(), labels.clone()) for inputs, labels in chunks))


def _metrics(problem: Problem, forward: Forward, chunks: Iterable[tuple[Tensor, Tensor]]) -> dict[str, np.ndarray]:
    num_trials = len(forward.parameters.values)
    scores = problem.objective.scores(num_trials)
    for inputs, labels in chunks:
        if problem.objective.is_per_token:
            inputs, labels = _without_padding(inputs), _without_padding(labels)
        inputs, labels = inputs.to(problem.device), labels.to(problem.device)
        viewed = forward.in_precision(problem.view(inputs))
        logits = forward.logits(viewed.expand(num_trials, *viewed.shape))
        scores.add(in_dtype(logits, torch.float32), labels)
    return scores.metrics()


def _chunk_examples(problem: Problem, split: Source) -> int:
    if problem.objective.is_per_token:
        most = CHUNK_LOGITS // (problem.num_classes * split.shape[0])
    else:
        most = CHUNK_PIXELS // math.prod(split.shape)
    return max(1, min(CHUNK_EXAMPLES, most))


def _without_padding(tokens: Tensor) -> Tensor:
    """Return the columns up to the last token of the longest sentence."""
    used = (tokens != PADDING).any(0).nonzero()
    return tokens[:, : int(used.max()) + 1 if len(used) else 1]
