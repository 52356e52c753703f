"""ResNet-8: its size, and its logits against the same network made of ordinary modules."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from batchlab.core.workload import Named
from batchlab.engine.parameters import ParameterMatrix
from batchlab.models.base import initial_parameters, num_parameters
from batchlab.models.registry import build_model
from batchlab.models.resnet_8 import ResNet8

FILTERS = (4, 6, 8)


def matrix_of(model: ResNet8, dtype: torch.dtype = torch.float64) -> ParameterMatrix:
    """Return parameters whose biases are not zero."""
    random = np.random.default_rng(0)
    row = initial_parameters(model, random) + 0.1 * random.standard_normal(num_parameters(model))
    return ParameterMatrix(torch.from_numpy(row[None]).to(dtype), model.shapes)


class Block(nn.Module):
    def __init__(self, num_inputs: int, num_outputs: int, stride: int) -> None:
        super().__init__()
        self.conv_0 = nn.Conv2d(num_inputs, num_outputs, 3, stride, padding=1)
        self.conv_1 = nn.Conv2d(num_outputs, num_outputs, 3, padding=1)
        self.stride, self.added = stride, num_outputs - num_inputs

    def forward(self, inputs: Tensor) -> Tensor:
        kept = inputs[:, :, :: self.stride, :: self.stride]
        zeros = torch.zeros(len(kept), self.added, *kept.shape[2:], dtype=kept.dtype)
        return self.conv_1(F.relu(self.conv_0(F.relu(inputs)))) + torch.cat([kept, zeros], 1)


class Obvious(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.stage_0, self.stage_1, self.stage_2 = Block(4, 4, 1), Block(4, 6, 2), Block(6, 8, 2)
        self.dense = nn.Linear(8, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        values = self.stage_2(self.stage_1(self.stage_0(self.conv(inputs))))
        return self.dense(F.adaptive_avg_pool2d(F.relu(values), 1).flatten(1))


def obvious(matrix: ParameterMatrix) -> Obvious:
    weights = {name: view[0].detach() for name, view in matrix.views.items()}
    network = Obvious().double()
    network.load_state_dict(
        {name: value.permute(0, 3, 1, 2) if value.ndim == 4 else value for name, value in weights.items()}
    )
    return network


def test_parameters_for_cifar_10():
    """Seven 3x3 convolutions with biases and one dense layer; the shortcuts have none."""
    expected = (
        (9 * 3 * 16 + 16)
        + 2 * (9 * 16 * 16 + 16)
        + (9 * 16 * 32 + 32)
        + (9 * 32 * 32 + 32)
        + (9 * 32 * 64 + 64)
        + (9 * 64 * 64 + 64)
        + (64 * 10 + 10)
    )
    model = build_model(Named(name="resnet_8"), (3, 32, 32), 10)

    assert num_parameters(model) == expected == 75_050
    assert sum(name.endswith(".weight") for name in model.shapes) == 8
    assert not model.normalised


def test_multiplications_for_cifar_10():
    """Weights times output pixels, 32x32, 16x16 and 8x8; the biases are the few per cent."""
    weights = 1024 * 9 * (3 * 16 + 2 * 16 * 16) + 256 * 9 * (16 * 32 + 32 * 32) + 64 * 9 * (32 * 64 + 64 * 64) + 640

    assert build_model(Named(name="resnet_8"), (3, 32, 32), 10).multiplications == pytest.approx(weights, rel=0.02)


@pytest.mark.parametrize("sides", [(8, 8), (9, 6)])
def test_logits_and_gradients_equal_those_of_ordinary_modules(sides):
    model = ResNet8((3, *sides), 10, FILTERS)
    matrix = matrix_of(model)
    network = obvious(matrix)
    inputs = torch.from_numpy(np.random.default_rng(1).standard_normal((5, 3, *sides)))
    labels = torch.arange(5)

    logits = model.logits(matrix.views, inputs[None])
    matrix.differentiate(F.cross_entropy(logits[0], labels)[None])
    expected = network(inputs)
    F.cross_entropy(expected, labels).backward()

    assert logits.shape == (1, 5, 10)
    torch.testing.assert_close(logits[0].detach(), expected.detach(), rtol=1e-10, atol=1e-10)
    for name, parameter in network.named_parameters():
        gradient = matrix.views[name].grad[0]
        gradient = gradient.permute(0, 3, 1, 2) if gradient.ndim == 4 else gradient
        torch.testing.assert_close(gradient, parameter.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 8, 8), (3, 7, 5)])
def test_small_images_work(shape):
    model = ResNet8(shape, 3, FILTERS)

    assert model.logits(matrix_of(model).views, torch.ones(1, 2, *shape, dtype=torch.float64)).shape == (1, 2, 3)


def test_the_loss_falls(losses_of):
    model = ResNet8((3, 8, 8), 10, FILTERS)
    matrix = ParameterMatrix(torch.from_numpy(initial_parameters(model, np.random.default_rng(0))[None]), model.shapes)
    inputs = torch.from_numpy(np.random.default_rng(1).standard_normal((1, 20, 3, 8, 8), np.float32))
    labels = torch.arange(20) % 10

    losses = losses_of(matrix, lambda: F.cross_entropy(model.logits(matrix.views, inputs)[0], labels), 0.3, 60)

    assert losses[-1] < 0.8 * losses[0]
