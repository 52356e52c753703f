"""VGG-11: its size, and its logits against the same network made of ordinary modules."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from batchlab.core.workload import Named
from batchlab.engine.parameters import ParameterMatrix
from batchlab.models.base import initial_parameters, num_parameters
from batchlab.models.registry import build_model
from batchlab.models.vgg_11 import Vgg11

FILTERS, HIDDEN = (3, 4, 5, 5, 6, 6, 7, 7), 9


def narrow(input_shape: tuple[int, ...]) -> tuple[Vgg11, ParameterMatrix]:
    """Return a narrow network and parameters whose biases are not zero."""
    model, random = Vgg11(input_shape, 10, FILTERS, HIDDEN), np.random.default_rng(0)
    row = initial_parameters(model, random) + 0.1 * random.standard_normal(num_parameters(model))
    return model, ParameterMatrix(torch.from_numpy(row[None]), model.shapes)


def obvious(matrix: ParameterMatrix, num_poolings: int, num_pixels: int) -> nn.Sequential:
    """Return the network of ordinary modules with the same weights and so many of the five poolings."""
    layers: list[nn.Module] = []
    for layer, (num_inputs, num_outputs) in enumerate(zip((3, *FILTERS), FILTERS, strict=False)):
        layers += [nn.Conv2d(num_inputs, num_outputs, 3, padding=1), nn.ReLU()]
        if layer in (0, 1, 3, 5, 7)[:num_poolings]:
            layers += [nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(FILTERS[-1] * num_pixels, HIDDEN), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10)).double()
    values = [view[0].detach() for view in matrix.views.values()]
    for parameter, value in zip(network.parameters(), values, strict=True):
        parameter.data.copy_(value.permute(0, 3, 1, 2) if value.ndim == 4 else value)
    return network


def test_parameters_for_imagenet():
    """Eight 3x3 convolutions, 7x7 pixels left of 224x224 after five poolings, three dense layers."""
    filters = [3, 64, 128, 256, 256, 512, 512, 512, 512]
    convolutions = sum(9 * filters[layer] * filters[layer + 1] + filters[layer + 1] for layer in range(8))
    dense = (512 * 7 * 7 * 4096 + 4096) + (4096 * 4096 + 4096) + (4096 * 1000 + 1000)
    model = build_model(Named(name="vgg_11"), (3, 224, 224), 1000)

    assert num_parameters(model) == convolutions + dense == 132_863_336
    assert not model.normalised


def test_multiplications_for_imagenet():
    """7.6 thousand million, the number commonly given for this network."""
    assert build_model(Named(name="vgg_11"), (3, 224, 224), 1000).multiplications == pytest.approx(7.61e9, rel=0.01)


@pytest.mark.parametrize(
    ("sides", "num_poolings", "num_pixels"),
    [((32, 32), 5, 1), ((64, 32), 5, 2), ((14, 14), 3, 1), ((7, 9), 2, 2), ((1, 5), 0, 5)],
)
def test_logits_and_gradients_equal_those_of_ordinary_modules(sides, num_poolings, num_pixels):
    """Sides of 14 are pooled to 7, 3 and 1 and then left alone."""
    model, matrix = narrow((3, *sides))
    network = obvious(matrix, num_poolings, num_pixels)
    inputs = torch.from_numpy(np.random.default_rng(1).standard_normal((4, 3, *sides)))
    labels = torch.arange(4)

    logits = model.logits(matrix.views, inputs[None])
    matrix.differentiate(F.cross_entropy(logits[0], labels)[None])
    expected = network(inputs)
    F.cross_entropy(expected, labels).backward()

    assert logits.shape == (1, 4, 10)
    torch.testing.assert_close(logits[0].detach(), expected.detach(), rtol=1e-10, atol=1e-10)
    for view, parameter in zip(matrix.views.values(), network.parameters(), strict=True):
        gradient = view.grad[0].permute(0, 3, 1, 2) if view.grad.ndim == 5 else view.grad[0]
        torch.testing.assert_close(gradient, parameter.grad, rtol=1e-9, atol=1e-12)


def test_the_loss_falls(losses_of):
    """From weights twice as large: where kernels meet mostly padding, Glorot's leave little of a signal."""
    model = Vgg11((1, 16, 16), 4, (8, 8, 16, 16, 16, 16, 16, 16), 32)
    values = torch.from_numpy(2 * initial_parameters(model, np.random.default_rng(0))[None])
    matrix = ParameterMatrix(values, model.shapes)
    inputs = torch.from_numpy(np.random.default_rng(1).standard_normal((1, 8, 1, 16, 16), np.float32))
    labels = torch.arange(8) % 4

    losses = losses_of(matrix, lambda: F.cross_entropy(model.logits(matrix.views, inputs)[0], labels), 0.02, 60)

    assert losses[-1] < 0.5 * losses[0]
