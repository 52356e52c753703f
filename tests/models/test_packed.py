from __future__ import annotations

import pytest
import torch

from batchlab.models.packed import in_place, linear


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
    with in_place():
        _, (same_to_inputs, *nothing) = differentiated(with_slots(tensors), precision)

    assert torch.equal(to_inputs, same_to_inputs)
    assert nothing == [None, None]
    assert torch.equal(returned[0], tensors["weight"].grad)
    assert torch.equal(returned[1], tensors["bias"].grad)


def test_without_being_asked_nothing_is_written(tensors):
    _, (_, *returned) = differentiated(tensors, torch.float32)
    _, (_, *same) = differentiated(with_slots(tensors), torch.float32)

    assert all(map(torch.equal, returned, same))
    assert (tensors["weight"].grad == 9).all()
    assert (tensors["bias"].grad == 9).all()


@pytest.mark.parametrize("has_slots", [False, True])
def test_a_second_derivative_is_right(tensors, has_slots):
    """Also where there are slots: a part that was written there would be missing."""
    exact = {name: tensor.detach().double().requires_grad_() for name, tensor in tensors.items()}

    def cubed(*given):
        if has_slots:
            with_slots(dict(zip(tensors, given, strict=True)))
        return linear(*given).pow(3)

    assert torch.autograd.gradgradcheck(cubed, tuple(exact.values()))


def test_a_second_derivative_is_right_where_another_path_leads_to_the_same_weight():
    """Of (w i)^2 + w^3, by hand: 2 i^2 + 6 w, times twice the first derivative."""
    inputs, weight, bias = torch.tensor([[[3.0]]]), torch.tensor([[[2.0]]]).requires_grad_(), torch.zeros(1, 1)
    outputs = linear(inputs, weight, bias).square().sum() + weight.pow(3).sum()

    (first,) = torch.autograd.grad(outputs, weight, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), weight)

    assert first.item() == 2 * 2 * 3**2 + 3 * 2**2
    assert second.item() == 2 * first.item() * (2 * 3**2 + 6 * 2)


@pytest.mark.parametrize("first", ["inputs", "weight"])
@pytest.mark.parametrize("second", ["inputs", "weight"])
def test_a_second_derivative_of_bfloat16_products_is_close(tensors, first, second):
    """Converted inside of the function, weight and inputs were constants of its derivative: off by half."""
    found = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            outputs = linear(*tensors.values()).float()
        (gradient,) = torch.autograd.grad(outputs.pow(3).sum(), tensors[first], create_graph=True)
        found += torch.autograd.grad(gradient.square().sum(), tensors[second])

    exact, rounded = found
    assert rounded.dtype == torch.float32
    assert (rounded - exact).norm() < 0.03 * exact.norm()
