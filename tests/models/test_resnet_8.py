"""ResNet-8: its size, and its logits against the same network made of ordinary modules."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from batchlab.core.workload import Named
from batchlab.models.base import num_parameters
from batchlab.models.registry import build_model
from batchlab.models.resnet_8 import ResNet8

FILTERS = (4, 6, 8)


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


def obvious(model: ResNet8) -> Obvious:
    network = Obvious().double()
    network.load_state_dict(model.state_dict())
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
    assert sum(name.endswith(".weight") for name, _ in model.named_parameters()) == 8
    assert not list(model.buffers())


@pytest.mark.parametrize("sides", [(8, 8), (9, 6)])
def test_logits_and_gradients_equal_those_of_ordinary_modules(sides, started):
    model = started(ResNet8((3, *sides), 10, FILTERS), noise=0.1)
    network = obvious(model)
    inputs = torch.from_numpy(np.random.default_rng(1).standard_normal((5, 3, *sides)))
    labels = torch.arange(5)

    logits, expected = model(inputs), network(inputs)
    F.cross_entropy(logits, labels).backward()
    F.cross_entropy(expected, labels).backward()

    assert logits.shape == (5, 10)
    torch.testing.assert_close(logits.detach(), expected.detach(), rtol=1e-10, atol=1e-10)
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(model.get_parameter(name).grad, parameter.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 8, 8), (3, 7, 5)])
def test_small_images_work(shape, started):
    network = started(ResNet8(shape, 3, FILTERS))

    assert network(torch.ones(2, *shape, dtype=torch.float64)).shape == (2, 3)


def test_the_loss_falls(started, losses_of):
    network = started(ResNet8((3, 8, 8), 10, FILTERS), noise=0.0, dtype=torch.float32)
    inputs = torch.from_numpy(np.random.default_rng(1).standard_normal((20, 3, 8, 8), np.float32))
    labels = torch.arange(20) % 10

    losses = losses_of(network, lambda: F.cross_entropy(network(inputs), labels), 0.3, 60)

    assert losses[-1] < 0.8 * losses[0]
