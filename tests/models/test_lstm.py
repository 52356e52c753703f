"""The LSTM against a slow, obvious version, and its parameters."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from batchlab.core.tokens import START
from batchlab.core.workload import Named
from batchlab.models.base import num_parameters
from batchlab.models.lstm import Lstm
from batchlab.models.registry import build_model

TOKENS, VOCABULARY, HIDDEN, PROJECTION = 7, 11, 6, 3


def small() -> Lstm:
    return Lstm(TOKENS, VOCABULARY, embedding=5, hidden=HIDDEN, projection=PROJECTION)


def obvious_logits(row: dict[str, Tensor], sentence: list[int]) -> Tensor:
    """Return [T, V] of one sentence: the LSTM's equations, one token after the other."""
    by_token = dict(
        zip(("input", "forget", "cell", "output"), row["recurrent.token_weight"].split(HIDDEN), strict=True)
    )
    by_state = dict(
        zip(("input", "forget", "cell", "output"), row["recurrent.state_weight"].split(HIDDEN), strict=True)
    )
    state = torch.zeros(PROJECTION, dtype=torch.float64)
    cell = torch.zeros(HIDDEN, dtype=torch.float64)
    logits = []
    for token in [START, *sentence[:-1]]:
        vector = row["embedding.weight"][token]
        gate = {
            name: by_token[name] @ vector + by_state[name] @ state + row[f"recurrent.{name}_bias"] for name in by_token
        }
        cell = gate["forget"].sigmoid() * cell + gate["input"].sigmoid() * gate["cell"].tanh()
        state = row["recurrent.projection_weight"] @ (gate["output"].sigmoid() * cell.tanh())
        logits.append(row["softmax.weight"] @ state + row["softmax.bias"])
    return torch.stack(logits)


def test_logits_equal_the_obvious_version(started, row_of, sentences):
    network, tokens = started(small()), sentences()

    logits = network(tokens).detach()

    assert logits.shape == (3, TOKENS, VOCABULARY)
    for sentence, found in zip(tokens.tolist(), logits, strict=True):
        torch.testing.assert_close(found, obvious_logits(row_of(network), sentence).detach(), rtol=1e-10, atol=1e-10)


def test_gradients_equal_those_of_the_obvious_version(started, row_of, sentences):
    network, tokens = started(small()), sentences(count=1)
    row, labels = row_of(network), tokens[0].long()

    F.cross_entropy(network(tokens)[0], labels).backward()
    F.cross_entropy(obvious_logits(row, labels.tolist()), labels).backward()

    for name, parameter in network.named_parameters():
        torch.testing.assert_close(parameter.grad, row[name].grad, rtol=1e-10, atol=1e-10)


def test_evaluation_gives_the_logits_of_training(started, sentences):
    network, tokens = started(small()), sentences()

    with torch.no_grad():
        evaluated = network(tokens)

    assert torch.equal(evaluated, network(tokens))


def test_loss_falls_on_a_text_that_repeats_itself(started, losses_of):
    network = started(Lstm(12, 6, embedding=16, hidden=32, projection=16), noise=0.0, dtype=torch.float32)
    text = torch.tensor([[2, 3, 4, 5] * 3, [4, 5, 2, 3] * 3])

    losses = losses_of(network, lambda: F.cross_entropy(network(text).flatten(0, 1), text.flatten()), 2.0, 60)

    assert abs(losses[0] - math.log(6)) < 0.1
    assert losses[-1] < 0.1  # only the first token is unknown: one bit in twelve tokens, 0.06 each


def test_parameters_are_as_many_as_the_layers_need():
    """Tokens, four gates on token and state, projection, softmax; the sum was added by hand."""
    embedding = 32_000 * 1024
    gates = 4 * 2048 * (1024 + 512 + 1)
    projection = 512 * 2048
    softmax = 32_000 * 512 + 32_000

    assert num_parameters(build_model(Named(name="lstm"), (64,), 32_000)) == embedding + gates + projection + softmax
    assert num_parameters(build_model(Named(name="lstm"), (64,), 32_000)) == 62_823_680


def test_the_forget_gate_starts_open_and_the_other_biases_at_zero(started, row_of):
    start = row_of(started(Lstm(TOKENS, 500, embedding=64, hidden=32, projection=16), noise=0.0))

    assert {name: set(values.tolist()) for name, values in start.items() if name.endswith("bias")} == {
        "recurrent.input_bias": {0.0},
        "recurrent.forget_bias": {1.0},
        "recurrent.cell_bias": {0.0},
        "recurrent.output_bias": {0.0},
        "softmax.bias": {0.0},
    }
    assert abs(start["embedding.weight"].std() / 0.1 - 1) < 0.02
    limit = math.sqrt(6 / (64 + 16 + 4 * 32))
    for name in ("recurrent.token_weight", "recurrent.state_weight"):
        assert 0.99 * limit < start[name].abs().max() <= limit
