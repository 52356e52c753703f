"""Fast formulas step aside for plain ones where they cannot be differentiated twice, and nowhere else."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import grad, jvp, vjp, vmap

from batchlab.models.transforms import is_transformed, with_plain

VALUES = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)

# PyTorch compiles its own formulas for forward mode so.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")


@pytest.fixture
def used() -> list[str]:
    return []


@pytest.fixture
def cube(used):
    """Return x^3, which notes by which formula it was computed; the fast one cannot be differentiated twice."""

    class Fast(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values: Tensor) -> Tensor:
            ctx.save_for_backward(values)
            return values**3

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gradient: Tensor) -> Tensor:
            return 3 * ctx.saved_tensors[0] ** 2 * gradient

    def fast(values: Tensor) -> Tensor:
        used.append("fast")
        return Fast.apply(values)

    def plain(values: Tensor) -> Tensor:
        used.append("plain")
        return values * values * values

    return lambda values: with_plain(fast, plain, values)


def test_values_and_a_first_derivative_are_those_of_the_fast_formula(cube, used):
    values = VALUES.clone().requires_grad_()

    outputs = cube(values)
    (first,) = torch.autograd.grad(outputs.sum(), values)

    assert outputs.tolist() == [1, 8, 27]
    assert first.tolist() == [3, 12, 27]
    assert used == ["fast"]


def test_a_second_derivative_is_that_of_the_plain_formula(cube, used):
    values = VALUES.clone().requires_grad_()

    (first,) = torch.autograd.grad(cube(values).sum(), values, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), values)

    assert first.tolist() == [3, 12, 27]
    assert second.tolist() == [6, 12, 18]
    assert used == ["fast", "plain"]


def test_a_backward_pass_may_be_repeated(cube):
    values = VALUES.clone().requires_grad_()
    outputs = cube(values).sum()

    (first,) = torch.autograd.grad(outputs, values, retain_graph=True)
    (again,) = torch.autograd.grad(outputs, values)

    assert torch.equal(first, again)


@pytest.mark.parametrize(
    ("transformed", "expected"),
    [
        (lambda cube: vmap(cube)(VALUES), [1, 8, 27]),
        (lambda cube: grad(lambda values: cube(values).sum())(VALUES), [3, 12, 27]),
        (lambda cube: jvp(cube, (VALUES,), (torch.ones_like(VALUES),))[1], [3, 12, 27]),
        (lambda cube: vjp(cube, VALUES)[1](torch.ones_like(VALUES))[0], [3, 12, 27]),
    ],
    ids=["vmap", "grad", "jvp", "vjp"],
)
def test_a_transform_uses_the_plain_formula(transformed, expected, cube, used):
    assert transformed(cube).tolist() == expected
    assert used == ["plain"]


def test_only_within_a_transform_something_is_transformed():
    seen = []

    vmap(lambda values: seen.append(is_transformed()) or values)(VALUES)

    assert seen == [True]
    assert not is_transformed()


def test_inputs_that_need_no_gradient_get_none():
    first, second = VALUES.clone().requires_grad_(), VALUES.clone()

    def product(left: Tensor, right: Tensor) -> Tensor:
        return left * right

    outputs = with_plain(product, product, first, second).sum()
    (found,) = torch.autograd.grad(outputs, first, create_graph=True)

    assert found.tolist() == [1, 2, 3]
