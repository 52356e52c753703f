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
    by_token = dict(zip(("input", "forget", "cell", "output"), row["gates.token_weight"].split(HIDDEN), strict=True))
    by_state = dict(zip(("input", "forget", "cell", "output"), row["gates.state_weight"].split(HIDDEN), strict=True))
    state = torch.zeros(PROJECTION, dtype=torch.float64)
    cell = torch.zeros(HIDDEN, dtype=torch.float64)
    logits = []
    for token in [START, *sentence[:-1]]:
        vector = row["embedding.weight"][token]
        gate = {name: by_token[name] @ vector + by_state[name] @ state + row[f"{name}_gate.bias"] for name in by_token}
        cell = gate["forget"].sigmoid() * cell + gate["input"].sigmoid() * gate["cell"].tanh()
        state = row["projection.weight"] @ (gate["output"].sigmoid() * cell.tanh())
        logits.append(row["softmax.weight"] @ state + row["softmax.bias"])
    return torch.stack(logits)


def test_logits_equal_the_obvious_version(parameters_of, sentences):
    model, tokens = small(), sentences()
    matrix = parameters_of(model)
    row = {name: view[0].detach() for name, view in matrix.views.items()}

    logits = model.logits(matrix.views, tokens).detach()

    assert logits.shape == (1, 3, TOKENS, VOCABULARY)
    for sentence, found in zip(tokens[0].tolist(), logits[0], strict=True):
        torch.testing.assert_close(found, obvious_logits(row, sentence), rtol=1e-10, atol=1e-10)


def test_gradients_equal_those_of_the_obvious_version(parameters_of, sentences):
    model, tokens = small(), sentences(count=1)
    matrix = parameters_of(model)
    row = {name: view[0].detach().clone().requires_grad_() for name, view in matrix.views.items()}
    labels = tokens[0, 0].long()

    matrix.differentiate(F.cross_entropy(model.logits(matrix.views, tokens)[0, 0], labels).unsqueeze(0))
    F.cross_entropy(obvious_logits(row, labels.tolist()), labels).backward()

    expected = torch.cat([values.grad.flatten() for values in row.values()])
    torch.testing.assert_close(matrix.gradients[0], expected, rtol=1e-10, atol=1e-10)


def test_evaluation_gives_the_logits_of_training(parameters_of, sentences):
    model, tokens = small(), sentences()
    views = parameters_of(model).views

    with torch.no_grad():
        evaluated = model.logits(views, tokens)

    assert torch.equal(evaluated, model.logits(views, tokens))


def test_loss_falls_on_a_text_that_repeats_itself(parameters_of, losses_of):
    model = Lstm(12, 6, embedding=16, hidden=32, projection=16)
    matrix = parameters_of(model, noise=0.0, dtype=torch.float32)
    text = torch.tensor([[2, 3, 4, 5] * 3, [4, 5, 2, 3] * 3]).unsqueeze(0)

    def loss() -> Tensor:
        return F.cross_entropy(model.logits(matrix.views, text).flatten(0, 2), text.flatten())

    losses = losses_of(matrix, loss, 2.0, 60)

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


def test_multiplications_of_one_sentence():
    """For each of 64 tokens 8192 x 1536 in the gates, 2048 x 512 in the projection, 512 x 32,000 in the softmax."""
    assert build_model(Named(name="lstm"), (64,), 32_000).multiplications == 64 * (12_582_912 + 1_048_576 + 16_384_000)


def test_the_forget_gate_starts_open_and_the_other_biases_at_zero(parameters_of):
    model = Lstm(TOKENS, 500, embedding=64, hidden=32, projection=16)
    matrix = parameters_of(model, noise=0.0)
    start = {name: view[0].detach() for name, view in matrix.views.items()}

    assert {name: set(values.tolist()) for name, values in start.items() if name.endswith(".bias")} == {
        "input_gate.bias": {0.0},
        "forget_gate.bias": {1.0},
        "cell_gate.bias": {0.0},
        "output_gate.bias": {0.0},
        "softmax.bias": {0.0},
    }
    assert abs(start["embedding.weight"].std() / 0.1 - 1) < 0.02
    limit = math.sqrt(6 / (64 + 16 + 4 * 32))
    for name in ("gates.token_weight", "gates.state_weight"):
        assert 0.99 * limit < start[name].abs().max() <= limit
