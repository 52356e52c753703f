"""Every model against a slow, obvious version of itself: one trial, plain layers, plain autograd."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from batchlab.core.workload import Named
from batchlab.engine.parameters import ParameterMatrix
from batchlab.models.fully_connected import FullyConnected
from batchlab.models.registry import build_model
from batchlab.models.simple_cnn import SimpleCnn

BATCH, CLASSES = 6, 10

MODELS = {
    "softmax_regression": lambda: build_model(Named(name="softmax_regression"), (1, 8, 8), CLASSES),
    "fc_128": lambda: build_model(Named(name="fc_128"), (1, 8, 8), CLASSES),
    "fc_7_5_3": lambda: FullyConnected([7, 5, 3], (2, 3, 3), CLASSES),
    "simple_cnn": lambda: SimpleCnn((4, 6), 16, (1, 8, 8), CLASSES),
    "simple_cnn of three channels": lambda: SimpleCnn((3, 2), 5, (3, 12, 8), CLASSES),
    "simple_cnn_narrow": lambda: build_model(Named(name="simple_cnn_narrow"), (1, 8, 8), CLASSES),
}
INPUT_SHAPES = {"fc_7_5_3": (2, 3, 3), "simple_cnn of three channels": (3, 12, 8)}


def obvious_logits(row: dict[str, Tensor], inputs: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return [B, C] for the parameters of one trial and inputs [B, ...], by the definition of each layer."""
    values, layer = inputs, 0
    while f"conv_{layer}.weight" in row:
        kernel = row[f"conv_{layer}.weight"]
        values = F.max_pool2d(F.relu(F.conv2d(values, kernel, row[f"conv_{layer}.bias"], padding=2)), 2)
        layer += 1
    values, layer = values.flatten(1), 0
    while f"dense_{layer + 1}.weight" in row:
        values = F.relu(F.linear(values, row[f"dense_{layer}.weight"], row[f"dense_{layer}.bias"]))
        layer += 1
    if mask is not None:
        values = values * mask
    return F.linear(values, row[f"dense_{layer}.weight"], row[f"dense_{layer}.bias"])


def draw(name: str, num_trials: int, dtype: torch.dtype = torch.float64):
    """Return a network, parameters with biases that are not zero, inputs and labels, one set for each trial."""
    random, networks = np.random.default_rng(0), []
    for _ in range(num_trials):
        network = MODELS[name]()
        network.start(random)
        for parameter in network.parameters():
            parameter.data += torch.from_numpy(0.1 * random.standard_normal(parameter.shape)).float()
        networks.append(network)
    matrix = ParameterMatrix.of(networks)
    matrix = ParameterMatrix(matrix.values.to(dtype), matrix.layout, is_written=True)
    inputs = random.random((num_trials, BATCH, *INPUT_SHAPES.get(name, (1, 8, 8))))
    labels = torch.from_numpy(random.integers(0, CLASSES, (num_trials, BATCH)))
    return networks[0], matrix, torch.from_numpy(inputs).to(dtype), labels


def mean_losses(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape).mean(1)


def row_of(matrix: ParameterMatrix, trial: int) -> dict[str, Tensor]:
    return {name: view[trial].detach().clone().requires_grad_() for name, view in matrix.views.items()}


@pytest.mark.parametrize("num_trials", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_logits_of_each_trial_equal_the_obvious_version(name, num_trials):
    model, matrix, inputs, _ = draw(name, num_trials)

    logits = model.packed_logits(matrix.views, inputs).detach()

    assert logits.shape == (num_trials, BATCH, CLASSES)
    for trial in range(num_trials):
        expected = obvious_logits(row_of(matrix, trial), inputs[trial]).detach()
        torch.testing.assert_close(logits[trial], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_the_module_gives_the_logits_of_its_packed_form(name):
    network, matrix, inputs, _ = draw(name, 1)
    matrix.adopt(network)

    torch.testing.assert_close(network(inputs[0]), network.packed_logits(matrix.views, inputs)[0])


@pytest.mark.parametrize("num_trials", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_in_the_matrix_equal_plain_autograd(name, num_trials):
    """Also where the gradient matrix held something else before: it is written, not added to."""
    model, matrix, inputs, labels = draw(name, num_trials)
    matrix.gradients.fill_(123.0)

    logits = model.packed_logits(matrix.views, inputs)
    matrix.differentiate(torch.stack([F.cross_entropy(logits[k], labels[k]) for k in range(num_trials)]))

    for trial in range(num_trials):
        row = row_of(matrix, trial)
        F.cross_entropy(obvious_logits(row, inputs[trial]), labels[trial]).backward()
        for name, parameter in row.items():
            torch.testing.assert_close(matrix.views[name].grad[trial], parameter.grad, rtol=1e-10, atol=1e-10)


def test_without_a_slot_the_linear_layer_is_an_ordinary_function():
    """Views that do not belong to a parameter matrix get their gradients as autograd gives them."""
    model, matrix, inputs, labels = draw("fc_7_5_3", 2)
    views = {name: view.detach().clone().requires_grad_() for name, view in matrix.views.items()}

    mean_losses(model.packed_logits(views, inputs), labels).sum().backward()
    matrix.differentiate(mean_losses(model.packed_logits(matrix.views, inputs), labels))

    for name, view in views.items():
        torch.testing.assert_close(view.grad, matrix.views[name].grad, rtol=1e-10, atol=1e-10)


def test_the_gradient_with_respect_to_the_inputs_passes_through():
    model, matrix, inputs, labels = draw("fc_7_5_3", 2)
    inputs.requires_grad_()

    F.cross_entropy(model.packed_logits(matrix.views, inputs)[1], labels[1]).backward(inputs=[inputs])
    ours = inputs.grad.clone()
    inputs.grad = None
    F.cross_entropy(obvious_logits(row_of(matrix, 1), inputs[1]), labels[1]).backward(inputs=[inputs])

    assert ours.abs().max() > 0
    torch.testing.assert_close(ours, inputs.grad, rtol=1e-10, atol=1e-10)


def in_bfloat16(name: str, num_trials: int, masks: Callable[[SimpleCnn], Tensor | None] = lambda model: None):
    model, matrix, inputs, labels = draw(name, num_trials, torch.float32)
    gradients = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            logits = model.packed_logits(matrix.views, inputs, masks(model))
        matrix.differentiate(mean_losses(logits, labels))
        gradients.append(matrix.gradients.clone())
    return logits, *gradients


@pytest.mark.parametrize("num_trials", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_bfloat16_products_give_float32_gradients_that_are_close(name, num_trials):
    logits, exact, rounded = in_bfloat16(name, num_trials)

    assert logits.dtype == torch.bfloat16
    assert rounded.dtype == torch.float32
    assert not torch.equal(exact, rounded)
    # bfloat16 keeps eight bits; where two pixels of a pool are that close, another one may pass the gradient.
    assert (rounded - exact).norm() < 0.1 * exact.norm()


def test_bfloat16_works_with_dropout_masks():
    def masks(model):
        return torch.from_numpy(np.random.default_rng(1).random((3, BATCH, model.hidden), np.float32))

    _, exact, rounded = in_bfloat16("simple_cnn", 3, masks)

    assert (rounded - exact).norm() < 0.1 * exact.norm()


@pytest.mark.parametrize("num_trials", [1, 3])
def test_masks_multiply_the_hidden_layer_of_their_trial(num_trials):
    model, matrix, inputs, _ = draw("simple_cnn", num_trials)
    masks = torch.from_numpy(np.random.default_rng(1).random((num_trials, BATCH, model.hidden)))

    logits = model.packed_logits(matrix.views, inputs, masks).detach()

    for trial in range(num_trials):
        expected = obvious_logits(row_of(matrix, trial), inputs[trial], masks[trial]).detach()
        torch.testing.assert_close(logits[trial], expected, rtol=1e-10, atol=1e-10)


def test_the_module_drops_by_its_masks_only_while_it_trains():
    network, matrix, inputs, _ = draw("simple_cnn", 1)
    matrix.adopt(network)
    network.masks = torch.from_numpy(np.random.default_rng(1).random((BATCH, network.hidden)))

    dropped, whole = network.train()(inputs[0]).detach(), network.eval()(inputs[0]).detach()

    row = row_of(matrix, 0)
    torch.testing.assert_close(dropped, obvious_logits(row, inputs[0], network.masks).detach())
    torch.testing.assert_close(whole, obvious_logits(row, inputs[0]).detach())


def test_a_network_inside_another_module_drops_units_without_being_given_masks():
    """As anybody's module would, by PyTorch's generator, which the engine keys by trial and step."""
    model = SimpleCnn((4, 6), 200, (1, 8, 8), CLASSES, dropout=0.25)
    model.start(np.random.default_rng(0))
    outer, images = torch.nn.Sequential(model), torch.ones(2, 1, 8, 8)

    assert not torch.equal(outer(images), outer(images))
    outer.eval()
    assert torch.equal(outer(images), outer(images))


def test_a_dropout_mask_drops_its_share_and_has_mean_one():
    model = SimpleCnn((4, 6), 200, (1, 8, 8), CLASSES, dropout=0.25)

    mask = model.draw_masks(np.random.default_rng(0), 500)

    assert mask.shape == (500, 200)
    assert mask.dtype == np.float32
    assert set(np.unique(mask)) == {np.float32(0), np.float32(1) / np.float32(0.75)}
    assert abs((mask == 0).mean() - 0.25) < 0.01
    assert abs(mask.mean() - 1) < 0.01
