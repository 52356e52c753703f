"""The Transformer against a slow, obvious version, and its parameters."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from batchlab.core.tokens import START
from batchlab.core.workload import Named
from batchlab.models.base import num_parameters
from batchlab.models.registry import build_model
from batchlab.models.transformer import Transformer

TOKENS, VOCABULARY = 7, 11


def small(layers: int = 2) -> Transformer:
    return Transformer(TOKENS, VOCABULARY, layers=layers, width=8, feed_forward=12, heads=2)


def normalised(vector: Tensor, row: dict[str, Tensor], name: str) -> Tensor:
    centred = vector - vector.mean()
    return centred / (centred.square().mean() + 1e-5).sqrt() * row[f"{name}.scale"] + row[f"{name}.bias"]


def position(place: int, width: int) -> Tensor:
    """Return sin and cos of place / 10000^(2i / width), one after the other: Vaswani et al. 2017, section 3.5."""
    angles = [place / 10_000 ** (2 * (i // 2) / width) for i in range(width)]
    return torch.tensor([math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(angles)], dtype=torch.float64)


def obvious_attention(row: dict[str, Tensor], name: str, vectors: list[Tensor], place: int, heads: int) -> Tensor:
    """Return what one place gathers: for each head, the values of the places up to it, weighted by softmax."""
    width = len(vectors[0])
    by_query, by_key, by_value = row[f"{name}.attention_in.weight"].split(width)
    seen = [normalised(vector, row, f"{name}.attention_norm") for vector in vectors[: place + 1]]
    gathered = []
    for head in range(heads):
        part = slice(head * width // heads, (head + 1) * width // heads)
        query = (by_query @ seen[place])[part]
        scores = torch.stack([query @ (by_key @ vector)[part] for vector in seen]) / math.sqrt(width // heads)
        weights = scores.exp() / scores.exp().sum()
        gathered.append(sum(weight * (by_value @ vector)[part] for weight, vector in zip(weights, seen, strict=True)))
    return row[f"{name}.attention_out.weight"] @ torch.cat(gathered)


def obvious_feed_forward(row: dict[str, Tensor], name: str, vector: Tensor) -> Tensor:
    hidden = row[f"{name}.dense_0.weight"] @ normalised(vector, row, f"{name}.dense_norm") + row[f"{name}.dense_0.bias"]
    return row[f"{name}.dense_1.weight"] @ hidden.clamp(min=0) + row[f"{name}.dense_1.bias"]


def obvious_logits(row: dict[str, Tensor], sentence: list[int], layers: int, heads: int) -> Tensor:
    """Return [T, V] of one sentence, place by place and head by head."""
    width = row["embedding.weight"].shape[1]
    vectors = [
        math.sqrt(width) * row["embedding.weight"][token] + position(place, width)
        for place, token in enumerate([START, *sentence[:-1]])
    ]
    for name in (f"layer_{layer}" for layer in range(layers)):
        places = range(len(vectors))
        vectors = [vectors[place] + obvious_attention(row, name, vectors, place, heads) for place in places]
        vectors = [vector + obvious_feed_forward(row, name, vector) for vector in vectors]
    return torch.stack([row["softmax.weight"] @ normalised(vector, row, "norm") for vector in vectors])


def test_logits_equal_the_obvious_version(started, row_of, sentences):
    network, tokens = started(small()), sentences()
    row = {name: values.detach() for name, values in row_of(network).items()}

    logits = network(tokens).detach()

    assert logits.shape == (3, TOKENS, VOCABULARY)
    for sentence, found in zip(tokens.tolist(), logits, strict=True):
        torch.testing.assert_close(found, obvious_logits(row, sentence, 2, 2), rtol=1e-9, atol=1e-9)


def test_gradients_equal_those_of_the_obvious_version(started, sentences):
    network, labels = started(small()), sentences(count=1)[0].long()
    row = dict(network.named_parameters())

    found, expected = (
        torch.autograd.grad(F.cross_entropy(logits, labels), list(row.values()))
        for logits in (network(labels[None])[0], obvious_logits(row, labels.tolist(), 2, 2))
    )

    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


def test_loss_falls_on_a_text_that_repeats_itself(started, losses_of):
    network = started(Transformer(12, 6, layers=1, width=16, feed_forward=32, heads=2), noise=0.0, dtype=torch.float32)
    text = torch.tensor([[2, 3, 4, 5] * 3, [4, 5, 2, 3] * 3])

    losses = losses_of(network, lambda: F.cross_entropy(network(text).flatten(0, 1), text.flatten()), 0.2, 40)

    assert losses[0] > 1
    assert losses[-1] < 0.1  # only the first token is unknown: one bit in twelve tokens, 0.06 each


@pytest.mark.parametrize(
    ("name", "layers", "width", "feed_forward"),
    [
        ("transformer_base", 6, 512, 2048),
        ("transformer_wide", 6, 1024, 4096),
        ("transformer_shallow", 2, 512, 2048),
        ("transformer_narrow_and_shallow", 2, 256, 1024),
    ],
)
def test_parameters_are_as_many_as_the_layers_need(name, layers, width, feed_forward):
    attention = 3 * width * width + width * width
    dense = width * feed_forward + feed_forward + feed_forward * width + width
    norm = width + width
    embedding, softmax = 32_000 * width, 32_000 * width
    expected = embedding + layers * (norm + attention + norm + dense) + norm + softmax

    assert num_parameters(build_model(Named(name=name), (64,), 32_000)) == expected


def test_parameters_of_the_base_in_round_numbers():
    """2 x 16,384,000 for the tokens, 6 x 3,150,336 for the layers and 1,024 for the last norm, added by hand."""
    assert num_parameters(Transformer(64, 32_000)) == 51_671_040


def test_embeddings_start_normal_and_norm_scales_at_one(started, row_of):
    model = Transformer(TOKENS, 500, layers=1, width=64, feed_forward=32, heads=2)
    start = row_of(started(model, noise=0.0))

    assert abs(start["embedding.weight"].std() * math.sqrt(64) - 1) < 0.02
    assert abs(start["layer_0.attention_in.weight"]).max() <= math.sqrt(6 / (64 + 64))
    assert abs(start["layer_0.attention_in.weight"]).max() > 0.99 * math.sqrt(6 / (64 + 64))
    assert all(bool((values == 1).all()) for name, values in start.items() if name.endswith(".scale"))
    assert all(bool((values == 0).all()) for name, values in start.items() if name.endswith(".bias"))
