"""The doctor stays silent on right loops: random models, sizes, cuts, weights, padding and numbers of workers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from batchlab.doctor.batch import lengthened
from batchlab.doctor.equivalence import equivalence

NUMBER = 100
PADDING = {"tokens": 0, "labels": -100}


class Perceptron(nn.Sequential):
    def __init__(self, random):
        width = int(random.integers(1, 12))
        super().__init__(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 3))


class Convolution(nn.Sequential):
    def __init__(self, random):
        groups = int(random.integers(1, 3))
        super().__init__(
            nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 4, 3, padding=1), nn.GroupNorm(groups, 4), nn.GELU(), nn.Flatten()
        )
        self.append(nn.Linear(16, 3))


class Recurrent(nn.Module):
    def __init__(self, random):
        super().__init__()
        self.embedding, self.cell = nn.Embedding(7, 5), nn.LSTM(5, int(random.integers(2, 8)), batch_first=True)
        self.head = nn.Linear(self.cell.hidden_size, 7)

    def forward(self, tokens):
        return self.head(self.cell(self.embedding(tokens))[0])


class Attention(nn.Module):
    def __init__(self, random):
        super().__init__()
        self.embedding, self.norm, self.head = nn.Embedding(7, 8), nn.LayerNorm(8), nn.Linear(8, 7)
        self.attention = nn.MultiheadAttention(8, int(random.choice([1, 2, 4])), batch_first=True)

    def forward(self, tokens):
        inputs = self.norm(self.embedding(tokens))
        is_padding = tokens == 0
        is_padding[:, 0] = False  # attention over nothing is not a number
        return self.head(inputs + self.attention(inputs, inputs, inputs, key_padding_mask=is_padding)[0])


def random_cut(random, number):
    """Return sizes of any kind, for any number of workers: some have more microbatches than others."""
    ends = [*random.choice(np.arange(1, number), size=int(random.integers(1, min(number, 8))), replace=False), number]
    sizes = np.diff([0, *sorted(ends)]).tolist()
    workers = int(random.integers(1, len(sizes) + 1))
    return [share.tolist() for share in np.array_split(np.array(sizes), workers)]


def random_case(random):
    """Return a right step, a batch, a model, and how the batch is padded."""
    number = int(random.integers(2, 24))
    bound = float(random.choice([1e-3, 1.0, np.inf]))  # of the gradient's norm; clipped in the right place
    if random.random() < 0.5:
        model = [Perceptron, Convolution][random.integers(2)](random)
        batch = (
            torch.randn(number, 4),
            torch.randint(0, 3, (number,)),
            torch.rand(number) * 10.0 ** random.integers(-2, 3),
        )
        return _weighted(bound), batch, model, None
    lengths = torch.from_numpy(random.integers(1, 13, number))
    tokens = torch.randint(1, 7, (number, 13))
    is_word = torch.arange(12) < lengths[:, None]
    batch = {"tokens": tokens[:, :-1].where(is_word, 0), "labels": tokens[:, 1:].where(is_word, -100)}
    model = [Recurrent, Attention][random.integers(2)](random)
    return _per_token(bound), lengthened(batch, PADDING, int(random.integers(0, 4))), model, PADDING


def _weighted(bound):
    """Return a step whose examples have weights, of which the mean is taken over all workers."""

    def step(model, microbatches, worker):
        total = worker.sum(sum(weights.sum() for _, _, weights in microbatches))
        for inputs, labels, weights in microbatches:
            losses = F.cross_entropy(model(inputs), labels, reduction="none")
            ((losses * weights).sum() / total * worker.num_workers).backward()
        _clip(model, worker, bound)

    return step


def _per_token(bound):
    def step(model, microbatches, worker):
        total = worker.sum(sum(int((each["labels"] != -100).sum()) for each in microbatches))
        for each in microbatches:
            logits, labels = model(each["tokens"]).flatten(0, 1), each["labels"].flatten()
            (F.cross_entropy(logits, labels, reduction="sum") / total * worker.num_workers).backward()
        _clip(model, worker, bound)

    return step


def _clip(model, worker, bound):
    worker.average_gradients(model)
    nn.utils.clip_grad_norm_(model.parameters(), bound)


@pytest.mark.parametrize("seed", range(NUMBER))
def test_a_right_loop_is_equivalent_however_its_batch_is_cut(seed):
    random = np.random.default_rng(seed)
    torch.manual_seed(seed)
    step, batch, model, padding = random_case(random)
    number = len(batch["labels"] if padding else batch[0])

    cut = equivalence(step, batch, model, cuts=[random_cut(random, number)])
    padded = equivalence(step, batch, model, workers=[1], padding=padding) if padding and seed % 4 == 0 else cut

    for verdict in (cut, padded):
        assert verdict.is_equivalent, verdict
        assert verdict.precision == "float64"
        assert verdict.findings == ()
        assert all(abs(row.comparison.norm_ratio - 1) < 1e-6 for row in verdict.rows)
