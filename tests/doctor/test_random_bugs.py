"""Each of the seven bugs, planted into random models with random batches, is named, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from batchlab.doctor.batch import num_examples
from batchlab.doctor.causes import Cause
from batchlab.doctor.equivalence import equivalence
from tests.doctor.test_random_splits import Convolution, Perceptron, random_case

NUMBER = 12
"""Cases of each bug; those with fewer than four examples have no ragged cut and are left out."""


class Normalised(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.norm = inner, nn.BatchNorm1d(3 if isinstance(inner, Perceptron | Convolution) else 7)

    def forward(self, inputs):
        outputs = self.inner(inputs)
        return self.norm(outputs.flatten(0, -2)).unflatten(0, outputs.shape[:-1])


class Dropping(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, inputs):
        return F.dropout(self.inner(inputs), 0.3, self.training)


def loss_sum(model, microbatch):
    """Return the sum of the losses, and the weights that they are to be divided by."""
    if isinstance(microbatch, dict):
        labels = microbatch["labels"].flatten()
        return F.cross_entropy(model(microbatch["tokens"]).flatten(0, 1), labels, reduction="sum"), (labels >= 0).sum()
    inputs, labels, weights = microbatch
    return (F.cross_entropy(model(inputs), labels, reduction="none") * weights).sum(), weights.sum()


def total_weight(model, microbatches):
    with torch.no_grad():
        return sum(loss_sum(model, each)[1] for each in microbatches)


def right(model, microbatches, divisor=1):
    total = total_weight(model, microbatches)
    for microbatch in microbatches:
        (loss_sum(model, microbatch)[0] / total / divisor).backward()


def mean_of_means(model, microbatches):
    for microbatch in microbatches:
        loss, weight = loss_sum(model, microbatch)
        (loss / weight / len(microbatches)).backward()


def factor_twice(model, microbatches):
    right(model, microbatches, len(microbatches))


def clipped_each(bound):
    def step(model, microbatches):
        total = total_weight(model, microbatches)
        for microbatch in microbatches:
            (loss_sum(model, microbatch)[0] / total).backward()
            nn.utils.clip_grad_norm_(model.parameters(), bound)

    return step


def dropout_by_rank(model, microbatches, worker):
    torch.manual_seed(worker.rank)
    total = worker.sum(total_weight(model.inner, microbatches))
    for microbatch in microbatches:
        (loss_sum(model, microbatch)[0] / total * worker.num_workers).backward()


def ragged_dropped(model, microbatches):
    right(model, [each for each in microbatches if num_examples(each) == num_examples(microbatches[0])])


def contrastive(model, microbatches):
    examples = sum(map(num_examples, microbatches))
    for microbatch in microbatches:
        outputs = model(microbatch["tokens"] if isinstance(microbatch, dict) else microbatch[0])
        vectors = F.normalize(outputs if outputs.ndim == 2 else outputs.mean(1), dim=1)
        loss = F.cross_entropy(3 * vectors @ vectors.T, torch.arange(len(vectors)), reduction="sum")
        (loss / examples).backward()


def norm_of_gradient(model, batch):
    right(model, [batch])
    norm = float(torch.cat([each.grad.flatten() for each in model.parameters()]).norm())
    model.zero_grad()
    return norm


BUGS = {
    Cause.MEAN_OF_MEANS: lambda model, batch: (mean_of_means, model),
    Cause.FACTOR: lambda model, batch: (factor_twice, model),
    Cause.CLIPPING: lambda model, batch: (clipped_each(norm_of_gradient(model, batch) / 2), model),
    Cause.BATCH_NORM: lambda model, batch: (right, Normalised(model)),
    Cause.DROPOUT: lambda model, batch: (dropout_by_rank, Dropping(model)),
    Cause.DROPPED: lambda model, batch: (ragged_dropped, model),
    Cause.COUPLED: lambda model, batch: (contrastive, model),
}


@pytest.mark.slow
@pytest.mark.parametrize("cause", BUGS)
def test_a_bug_in_a_random_loop_is_named_and_nothing_else(cause):
    named, cases = 0, 0
    for seed in range(NUMBER):
        torch.manual_seed(seed)
        _, batch, model, _ = random_case(np.random.default_rng(seed))
        if num_examples(batch) < 4:
            continue
        step, planted = BUGS[cause](model, batch)
        verdict = equivalence(step, batch, planted)
        named, cases = named + (verdict.causes == (cause,)), cases + 1

    assert cases > 0.8 * NUMBER
    assert named == cases
