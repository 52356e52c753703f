"""What every language model must do, and must not: look ahead."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from batchlab.core.tokens import PADDING
from batchlab.models.base import Network
from batchlab.models.lstm import Lstm
from batchlab.models.transformer import Transformer

TOKENS, VOCABULARY = 7, 11


@pytest.fixture(params=["transformer", "lstm"])
def model(request) -> Network:
    if request.param == "lstm":
        return Lstm(TOKENS, VOCABULARY, embedding=5, hidden=6, projection=3)
    return Transformer(TOKENS, VOCABULARY, layers=2, width=8, feed_forward=12, heads=2)


@pytest.mark.parametrize("place", range(TOKENS))
def test_a_token_changes_only_what_comes_after_it(model, place, started, sentences):
    tokens = sentences()
    network, other = started(model), tokens.clone()
    other[:, place] = (tokens[:, place] - 1) % (VOCABULARY - 2) + 2

    before, after = network(tokens), network(other)

    torch.testing.assert_close(before[:, : place + 1], after[:, : place + 1], rtol=1e-12, atol=1e-12)
    assert all(bool((before[:, later] != after[:, later]).any()) for later in range(place + 1, TOKENS))


def test_padding_changes_nothing_of_the_sentence(model, started, sentences):
    short = sentences(num_tokens=4)
    network = started(model)
    padded = F.pad(short, (0, 3), value=PADDING)

    expected, found = network(short), network(padded)

    torch.testing.assert_close(found[:, :4], expected, rtol=1e-12, atol=1e-12)


def test_a_sentence_may_be_longer_than_the_training_examples(model, started, sentences):
    long = sentences(num_tokens=5 * TOKENS)
    network = started(model)

    logits = network(long)

    assert logits.shape == (3, 5 * TOKENS, VOCABULARY)
    torch.testing.assert_close(logits[:, :TOKENS], network(long[:, :TOKENS]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.int64])
def test_tokens_may_be_kept_in_any_whole_number_type(model, dtype, started, sentences):
    tokens = sentences()
    network = started(model)

    assert torch.equal(network(tokens), network(tokens.to(dtype)))


def test_bfloat16_logits_are_close(model, started, sentences):
    tokens = sentences()
    network = started(model, dtype=torch.float32)

    exact = network(tokens)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = network(tokens)

    assert rounded.dtype == torch.bfloat16
    assert (rounded - exact).norm() < 0.05 * exact.norm()
