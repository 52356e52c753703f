"""Derivatives of every family in float64: gradients, per-example gradients and Hessian-vector products.

The reference is slow and obvious: differences of the loss and of gradients over steps h and h/2, extrapolated to h = 0
(Richardson), in directions that are drawn; ReLU and pooling have kinks, so steps are small.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, grad, jvp, vmap

from batchlab.models.fully_connected import FullyConnected
from batchlab.models.lstm import Lstm
from batchlab.models.resnet_8 import ResNet8
from batchlab.models.resnet_50 import ResNet50
from batchlab.models.simple_cnn import SimpleCnn
from batchlab.models.transformer import Transformer
from batchlab.models.vgg_11 import Vgg11

BATCH, CLASSES, BAR = 5, 4, 1e-6
STEP = 1e-5

FAMILIES = {
    "softmax_regression": lambda: FullyConnected([], (1, 8, 8), CLASSES),
    "fc": lambda: FullyConnected([7, 5], (1, 8, 8), CLASSES),
    "simple_cnn": lambda: SimpleCnn((3, 4), 6, (1, 8, 8), CLASSES),
    "simple_cnn with masks": lambda: SimpleCnn((3, 4), 6, (1, 8, 8), CLASSES, dropout=0.5),
    "resnet_8": lambda: ResNet8((1, 8, 8), CLASSES, (3, 4, 5)),
    "resnet_50, ghosts of 2 and one of 1": lambda: ResNet50((1, 8, 8), CLASSES, (1, 1), 2, ghost_size=2),
    "vgg_11": lambda: Vgg11((1, 8, 8), CLASSES, (3, 3, 4, 4, 4, 4, 4, 4), 6),
    "lstm": lambda: Lstm(6, CLASSES, embedding=5, hidden=6, projection=3),
    "transformer": lambda: Transformer(6, CLASSES, layers=2, width=8, feed_forward=10, heads=2),
}
PER_EXAMPLE = {name: make for name, make in FAMILIES.items() if "masks" not in name}


class Family:
    """A network, a batch, and the loss of it as a function of the parameters."""

    def __init__(self, name, started):
        random = np.random.default_rng(2)
        self.network = started(FAMILIES[name](), noise=0.1)
        self.is_text = name in ("lstm", "transformer")
        if self.is_text:
            self.inputs = self.labels = torch.from_numpy(random.integers(0, CLASSES, (BATCH, 6)))
        else:
            self.inputs = torch.from_numpy(random.standard_normal((BATCH, 1, 8, 8)))
            self.labels = torch.from_numpy(random.integers(0, CLASSES, BATCH))
        if self.network.dropout:
            self.network.masks = torch.from_numpy(self.network.draw_masks(random, BATCH)).double()
        self.parameters = {name: each.detach() for name, each in self.network.named_parameters()}
        drawn = {name: random.standard_normal(each.shape) for name, each in self.parameters.items()}
        self.direction = {name: torch.from_numpy(each) for name, each in drawn.items()}

    def loss(self, parameters, inputs=None, labels=None) -> Tensor:
        inputs, labels = (self.inputs, self.labels) if inputs is None else (inputs, labels)
        logits = functional_call(self.network, parameters, (inputs,))
        return F.cross_entropy(logits.flatten(0, -2), labels.flatten())

    def moved(self, by):
        return {name: each + by * self.direction[name] for name, each in self.parameters.items()}

    def gradient(self, parameters, inputs=None, labels=None):
        """Return the gradient as training computes it: eager, by one backward pass."""
        leaves = {name: each.clone().requires_grad_() for name, each in parameters.items()}
        found = torch.autograd.grad(self.loss(leaves, inputs, labels), list(leaves.values()))
        return dict(zip(leaves, found, strict=True))


@pytest.fixture(params=FAMILIES)
def family(request, started):
    return Family(request.param, started)


def extrapolated(difference):
    """Return the limit of central differences: errors of the order h^2 cancel between h and h/2."""
    return (4 * difference(STEP / 2) - difference(STEP)) / 3


def flat(values):
    return torch.cat([each.flatten() for each in values.values()])


def distance(found, expected):
    return float((flat(found) - flat(expected)).norm() / flat(expected).norm())


def test_the_gradient_is_the_slope_of_the_loss(family):
    slope = extrapolated(lambda h: (family.loss(family.moved(h)) - family.loss(family.moved(-h))) / (2 * h))

    found = torch.dot(flat(family.gradient(family.parameters)), flat(family.direction))

    assert abs(found - slope) < BAR * abs(slope)


def test_a_transform_gives_the_gradient_of_training(family):
    assert distance(grad(family.loss)(family.parameters), family.gradient(family.parameters)) < 1e-12


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_per_example_gradients_are_those_of_batches_of_one(name, started):
    family = Family(name, started)

    def loss_of_one(parameters, example, label):
        return family.loss(parameters, example.unsqueeze(0), label.unsqueeze(0))

    found = vmap(grad(loss_of_one), in_dims=(None, 0, 0))(family.parameters, family.inputs, family.labels)

    for example in range(BATCH):
        one = slice(example, example + 1)
        expected = family.gradient(family.parameters, family.inputs[one], family.labels[one])
        assert distance({key: values[example] for key, values in found.items()}, expected) < BAR


@pytest.fixture
def curvature(family):
    """The product of the Hessian and the direction, from differences of gradients."""

    def difference(h):
        ahead, behind = family.gradient(family.moved(h)), family.gradient(family.moved(-h))
        return (flat(ahead) - flat(behind)) / (2 * h)

    return extrapolated(difference)


def test_a_hessian_vector_product_by_two_backward_passes(family, curvature):
    leaves = {name: each.clone().requires_grad_() for name, each in family.parameters.items()}
    first = torch.autograd.grad(family.loss(leaves), list(leaves.values()), create_graph=True)
    along = sum((each * family.direction[name]).sum() for name, each in zip(leaves, first, strict=True))

    found = torch.autograd.grad(along, list(leaves.values()))

    found = torch.cat([each.flatten() for each in found])
    assert float((found - curvature).norm() / curvature.norm()) < BAR


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # which torch itself calls there
def test_a_hessian_vector_product_by_transforms(family, curvature):
    _, found = jvp(grad(family.loss), (family.parameters,), (family.direction,))

    assert float((flat(found) - curvature).norm() / curvature.norm()) < BAR
