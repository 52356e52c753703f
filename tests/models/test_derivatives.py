"""Derivatives of every family in float64: of a batch, of each example, and products with the Hessian.

The references are slow and obvious: differences of the loss, a loop over batches of one example, differences of the
gradient. Differences are central, extrapolated to the fourth order (Richardson), over steps so short that no ReLU
turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, grad, jvp, vjp, vmap

from batchlab.engine.parameters import ParameterMatrix
from batchlab.models.base import Network
from batchlab.models.fully_connected import FullyConnected
from batchlab.models.lstm import Lstm
from batchlab.models.resnet_8 import ResNet8
from batchlab.models.resnet_50 import ResNet50
from batchlab.models.simple_cnn import SimpleCnn
from batchlab.models.transformer import Transformer
from batchlab.models.vgg_11 import Vgg11

BATCH, CLASSES, TOKENS, VOCABULARY = 7, 4, 5, 7
STEP = 1e-6
TOLERANCE = 1e-6
ROUNDING = 1e-12
"""Between two ways of computing the same without differences."""

Row = dict[str, Tensor]

# PyTorch compiles its own formulas for forward mode so.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")

FAMILIES: dict[str, Callable[[], Network]] = {
    "softmax_regression": lambda: FullyConnected([], (1, 8, 8), CLASSES),
    "fc": lambda: FullyConnected([6, 5], (1, 8, 8), CLASSES),
    "simple_cnn": lambda: SimpleCnn((2, 3), 5, (1, 8, 8), CLASSES),
    "simple_cnn with masks": lambda: SimpleCnn((2, 3), 5, (1, 8, 8), CLASSES, dropout=0.4),
    "resnet_8": lambda: ResNet8((1, 8, 8), CLASSES, (2, 3, 4)),
    "resnet_50 with ragged ghosts": lambda: ResNet50((1, 8, 8), CLASSES, (1, 2), 2, ghost_size=3),
    "resnet_50 with one ghost": lambda: ResNet50((1, 8, 8), CLASSES, (1, 1), 2, ghost_size=32),
    "resnet_50 with ghosts of one": lambda: ResNet50((1, 8, 8), CLASSES, (1, 1), 2, ghost_size=1),
    "resnet_50 of large images": lambda: ResNet50((1, 64, 64), CLASSES, (1,), 2, ghost_size=3),
    "vgg_11": lambda: Vgg11((1, 8, 8), CLASSES, (3, 4, 4, 4, 4, 4, 4, 4), 5),
    "lstm": lambda: Lstm(TOKENS, VOCABULARY, embedding=4, hidden=5, projection=3),
    "transformer": lambda: Transformer(TOKENS, VOCABULARY, layers=2, width=8, feed_forward=6, heads=2),
}
PACKABLE = ["softmax_regression", "fc", "simple_cnn", "simple_cnn with masks"]


@dataclass
class Case:
    """A network in training, somewhere off its start, and a batch."""

    network: Network
    inputs: Tensor
    labels: Tensor
    masks: Tensor | None = None

    @property
    def row(self) -> Row:
        return {name: parameter.detach() for name, parameter in self.network.named_parameters()}

    def loss(self, row: Row) -> Tensor:
        return self.loss_of(row, self.inputs, self.labels, self.masks)

    def loss_of(self, row: Row, inputs: Tensor, labels: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return the mean loss of some examples for other parameters than the network's own."""
        self.network.masks = masks
        logits = functional_call(self.network, row, (inputs,))
        return F.cross_entropy(logits.flatten(0, -2), labels.flatten())

    def loss_of_one(self, row: Row, *example: Tensor) -> Tensor:
        return self.loss_of(row, *(each.unsqueeze(0) for each in example))

    @property
    def examples(self) -> tuple[Tensor, ...]:
        return (self.inputs, self.labels) if self.masks is None else (self.inputs, self.labels, self.masks)


@pytest.fixture
def make_case(started) -> Callable[[str], Case]:
    def make(family: str) -> Case:
        network, random = started(FAMILIES[family]()).train(), np.random.default_rng(1)
        if isinstance(network, Lstm | Transformer):
            inputs = labels = torch.from_numpy(random.integers(2, VOCABULARY, (BATCH, TOKENS)))
        else:
            side = 64 if "large" in family else 8
            inputs = torch.from_numpy(random.standard_normal((BATCH, 1, side, side)))
            labels = torch.from_numpy(random.integers(0, CLASSES, BATCH))
        masks = torch.from_numpy(network.draw_masks(random, BATCH)).double() if network.dropout else None
        return Case(network, inputs, labels, masks)

    return make


def flat(tensors: Iterable[Tensor]) -> Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def direction(row: Row, seed: int = 2) -> Row:
    random = np.random.default_rng(seed)
    return {name: torch.from_numpy(random.standard_normal(values.shape)) for name, values in row.items()}


def moved(row: Row, by: float, along: Row) -> Row:
    return {name: values + by * along[name] for name, values in row.items()}


def gradient(loss: Callable[[Row], Tensor], row: Row) -> Tensor:
    leaves = {name: values.clone().requires_grad_() for name, values in row.items()}
    return flat(torch.autograd.grad(loss(leaves), list(leaves.values())))


def difference(function: Callable[[Row], Tensor], row: Row, along: Row) -> Tensor:
    """Return the derivative of a function along a direction."""

    def central(step: float) -> Tensor:
        return (function(moved(row, step, along)) - function(moved(row, -step, along))) / (2 * step)

    return (4 * central(STEP / 2) - central(STEP)) / 3


def assert_near(found: Tensor, expected: Tensor, tolerance: float) -> None:
    assert expected.norm() > 0
    assert (found - expected).norm() <= tolerance * expected.norm()


@pytest.fixture(params=FAMILIES)
def case(request, make_case) -> Case:
    return make_case(request.param)


# Of a batch


def test_the_gradient_equals_differences_of_the_loss(case):
    """Along eight directions, each of which moves every parameter."""
    case.network.masks = case.masks
    logits = case.network(case.inputs)
    loss = F.cross_entropy(logits.flatten(0, -2), case.labels.flatten())

    gradients = torch.autograd.grad(loss, list(case.network.parameters()))

    directions = [direction(case.row, seed) for seed in range(8)]
    along = torch.stack([flat(each.values()) @ flat(gradients) for each in directions])
    expected = torch.stack([difference(case.loss, case.row, each) for each in directions])
    assert all(bool(each.any()) for each in gradients)
    assert_near(along, expected.detach(), TOLERANCE)


def test_the_gradient_of_a_transform_is_that_of_the_module(case):
    found = flat(grad(case.loss)(case.row).values())

    assert_near(found, gradient(case.loss, case.row), ROUNDING)


# Of each example: as if it were a batch of its own


def gradients_of_examples(case: Case) -> Tensor:
    """Return [B, P]."""
    differentiated = vmap(grad(case.loss_of_one), (None, *(0 for _ in case.examples)))
    gradients = differentiated(case.row, *case.examples)
    return torch.cat([values.flatten(1) for values in gradients.values()], 1)


def test_the_gradients_of_the_examples_equal_those_of_batches_of_one(case):
    found = gradients_of_examples(case)

    expected = [
        gradient(lambda row, example=example: case.loss_of_one(row, *example), case.row)
        for example in zip(*case.examples, strict=True)
    ]
    assert found.shape[0] == BATCH
    for ours, theirs in zip(found, expected, strict=True):
        assert_near(ours, theirs, ROUNDING)


@pytest.mark.parametrize("family", [name for name in FAMILIES if "50" not in name or name.endswith("ghosts of one")])
def test_the_gradient_of_a_batch_is_the_mean_over_its_examples(family, make_case):
    """Where no example notices the others; of sentences, which are all as long here, too."""
    case = make_case(family)

    assert_near(gradients_of_examples(case).mean(0), gradient(case.loss, case.row), ROUNDING)


# Hessian times a vector


def expected_product(case: Case) -> Tensor:
    return difference(lambda row: gradient(case.loss, row), case.row, direction(case.row))


def product_by_double_backward(case: Case) -> Tensor:
    case.network.masks = case.masks
    parameters, logits = list(case.network.parameters()), case.network(case.inputs)
    loss = F.cross_entropy(logits.flatten(0, -2), case.labels.flatten())
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    return flat(torch.autograd.grad(gradients, parameters, list(direction(case.row).values()), materialize_grads=True))


def product_forward_over_reverse(case: Case) -> Tensor:
    _, product = jvp(grad(case.loss), (case.row,), (direction(case.row),))
    return flat(product.values())


def product_reverse_over_reverse(case: Case) -> Tensor:
    _, pull_back = vjp(grad(case.loss), case.row)
    return flat(pull_back(direction(case.row))[0].values())


@pytest.mark.parametrize(
    "product", [product_by_double_backward, product_forward_over_reverse, product_reverse_over_reverse]
)
def test_a_product_with_the_hessian_equals_differences_of_the_gradient(case, product):
    found = product(case)

    assert_near(found, expected_product(case), TOLERANCE)


def test_products_with_the_hessian_of_each_example_equal_those_of_batches_of_one(case):
    def product(*example: Tensor) -> Row:
        return jvp(grad(lambda row: case.loss_of_one(row, *example)), (case.row,), (direction(case.row),))[1]

    found = vmap(product)(*case.examples)

    for index in range(BATCH):
        alone = Case(case.network, *(each[index : index + 1] for each in case.examples))
        assert_near(flat(values[index] for values in found.values()), product_by_double_backward(alone), ROUNDING)


# Several trials at once


@pytest.mark.parametrize("family", PACKABLE)
def test_the_packed_form_has_the_second_derivatives_of_the_module(family, make_case):
    """Also where gradients may be written in place: a written part would be missing in the second derivative."""
    case = make_case(family)
    rows = [case.row, moved(case.row, 0.1, direction(case.row, seed=3))]
    matrix = matrix_of(case.network, rows)
    inputs, labels, masks = (
        None if each is None else each.expand(2, *each.shape) for each in (case.inputs, case.labels, case.masks)
    )

    logits = case.network.packed_logits(matrix.views, inputs, masks)
    loss = sum(F.cross_entropy(logits[trial], labels[trial]) for trial in range(2))
    gradients = torch.autograd.grad(loss, list(matrix.views.values()), create_graph=True)
    along = [values.expand(2, *values.shape) for values in direction(case.row).values()]
    products = torch.autograd.grad(gradients, list(matrix.views.values()), along)

    for trial, row in enumerate(rows):
        case.network.load_state_dict(row)
        assert_near(flat(each[trial] for each in products), product_by_double_backward(case), ROUNDING)
    assert not matrix.gradients.any()


def matrix_of(network: Network, rows: list[Row]) -> ParameterMatrix:
    """Return a parameter matrix in float64."""
    layout = ParameterMatrix.of([network]).layout
    matrix = ParameterMatrix(torch.zeros(len(rows), layout.size, dtype=torch.float64), layout, is_written=True)
    for trial, row in enumerate(rows):
        for name, view in matrix.layout.segments(matrix.values).items():
            view[trial].copy_(row[name])
    return matrix
