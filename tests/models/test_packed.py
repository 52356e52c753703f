from __future__ import annotations

import pytest
import torch

from batchlab.models.packed import linear


@pytest.fixture
def tensors():
    random = torch.Generator().manual_seed(0)
    shapes = {"inputs": (2, 5, 3), "weight": (2, 4, 3), "bias": (2, 4)}
    return {name: torch.randn(shape, generator=random).requires_grad_() for name, shape in shapes.items()}


def with_slots(tensors):
    for name in ("weight", "bias"):
        tensors[name].grad = torch.full_like(tensors[name], 9.0)
    return tensors


def differentiated(tensors, precision):
    """Return the outputs and what autograd returns for each tensor."""
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
        outputs = linear(*tensors.values())
    weights = torch.arange(outputs.numel()).view(outputs.shape)
    return outputs, torch.autograd.grad((outputs.float() * weights).sum(), list(tensors.values()), allow_unused=True)


@pytest.mark.parametrize(("precision", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.02)])
def test_outputs_and_gradients_are_those_of_a_product_for_each_trial(tensors, precision, tolerance):
    outputs, gradients = differentiated(tensors, precision)

    weights = torch.arange(outputs.numel(), dtype=torch.float32).view(outputs.shape)
    with torch.no_grad():
        products = [i @ w.T + b for i, w, b in zip(*tensors.values(), strict=True)]
        expected = (
            torch.stack([g @ w for g, w in zip(weights, tensors["weight"], strict=True)]),
            torch.stack([g.T @ i for g, i in zip(weights, tensors["inputs"], strict=True)]),
            weights.sum(1),
        )
    assert outputs.dtype == precision
    torch.testing.assert_close(outputs.float(), torch.stack(products), rtol=tolerance, atol=tolerance)
    for gradient, wanted in zip(gradients, expected, strict=True):
        assert gradient.dtype == torch.float32
        torch.testing.assert_close(gradient, wanted, rtol=tolerance, atol=tolerance * wanted.abs().max().item())


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_gradients_written_in_place_are_those_that_autograd_returns(tensors, precision):
    _, (to_inputs, *returned) = differentiated(tensors, precision)
    _, (same_to_inputs, *nothing) = differentiated(with_slots(tensors), precision)

    assert torch.equal(to_inputs, same_to_inputs)
    assert nothing == [None, None]
    assert torch.equal(returned[0], tensors["weight"].grad)
    assert torch.equal(returned[1], tensors["bias"].grad)


@pytest.mark.parametrize("has_slots", [True, False])
def test_the_gradient_can_be_differentiated(tensors, has_slots):
    """Then nothing is written in place: that would be no part of the graph."""
    leaves = {name: tensor.detach().double().requires_grad_() for name, tensor in tensors.items()}
    if has_slots:
        with_slots(leaves)

    assert torch.autograd.gradgradcheck(linear, tuple(leaves.values()))
    assert not has_slots or bool((leaves["weight"].grad == 9).all())
