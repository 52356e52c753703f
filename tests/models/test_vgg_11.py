"""VGG-11: its size, and its logits against the same network made of ordinary modules."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from batchlab.core.workload import Named
from batchlab.models.base import num_parameters
from batchlab.models.registry import build_model
from batchlab.models.vgg_11 import Vgg11

FILTERS, HIDDEN = (3, 4, 5, 5, 6, 6, 7, 7), 9


def obvious(model: Vgg11, num_poolings: int, num_pixels: int) -> nn.Sequential:
    """Return the network of ordinary modules with the same weights and so many of the five poolings."""
    layers: list[nn.Module] = []
    for layer, (num_inputs, num_outputs) in enumerate(zip((3, *FILTERS), FILTERS, strict=False)):
        layers += [nn.Conv2d(num_inputs, num_outputs, 3, padding=1), nn.ReLU()]
        if layer in (0, 1, 3, 5, 7)[:num_poolings]:
            layers += [nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(FILTERS[-1] * num_pixels, HIDDEN), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10)).double()
    for parameter, value in zip(network.parameters(), model.parameters(), strict=True):
        parameter.data.copy_(value.data)
    return network


def test_parameters_for_imagenet():
    """Eight 3x3 convolutions, 7x7 pixels left of 224x224 after five poolings, three dense layers."""
    filters = [3, 64, 128, 256, 256, 512, 512, 512, 512]
    convolutions = sum(9 * filters[layer] * filters[layer + 1] + filters[layer + 1] for layer in range(8))
    dense = (512 * 7 * 7 * 4096 + 4096) + (4096 * 4096 + 4096) + (4096 * 1000 + 1000)
    model = build_model(Named(name="vgg_11"), (3, 224, 224), 1000)

    assert num_parameters(model) == convolutions + dense == 132_863_336
    assert not list(model.buffers())


@pytest.mark.parametrize(
    ("sides", "num_poolings", "num_pixels"),
    [((32, 32), 5, 1), ((64, 32), 5, 2), ((14, 14), 3, 1), ((7, 9), 2, 2), ((1, 5), 0, 5)],
)
def test_logits_and_gradients_equal_those_of_ordinary_modules(sides, num_poolings, num_pixels, started):
    """Sides of 14 are pooled to 7, 3 and 1 and then left alone."""
    model = started(Vgg11((3, *sides), 10, FILTERS, HIDDEN), noise=0.1)
    network = obvious(model, num_poolings, num_pixels)
    inputs = torch.from_numpy(np.random.default_rng(1).standard_normal((4, 3, *sides)))
    labels = torch.arange(4)

    logits, expected = model(inputs), network(inputs)
    F.cross_entropy(logits, labels).backward()
    F.cross_entropy(expected, labels).backward()

    assert logits.shape == (4, 10)
    torch.testing.assert_close(logits.detach(), expected.detach(), rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(model.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-9, atol=1e-12)


def test_the_loss_falls(started, losses_of):
    """From weights twice as large: where kernels meet mostly padding, Glorot's leave little of a signal."""
    network = Vgg11((1, 16, 16), 4, (8, 8, 16, 16, 16, 16, 16, 16), 32)
    started(network, noise=0.0, dtype=torch.float32)
    for parameter in network.parameters():
        parameter.data *= 2
    inputs = torch.from_numpy(np.random.default_rng(1).standard_normal((8, 1, 16, 16), np.float32))
    labels = torch.arange(8) % 4

    losses = losses_of(network, lambda: F.cross_entropy(network(inputs), labels), 0.02, 60)

    assert losses[-1] < 0.5 * losses[0]
