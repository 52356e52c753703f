"""Ghost batch normalisation against a loop over ghosts, one batch normalisation each."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from batchlab.models.averages import RunningAverages
from batchlab.models.ghost_norm import ghost_norm, norm_shapes

CHANNELS = 3


def draw(batch_size: int, memory_format: torch.memory_format = torch.contiguous_format, sides=(4, 5)):
    """Return inputs far from mean 0 and variance 1, a scale, a shift and an output gradient."""
    random = torch.Generator().manual_seed(batch_size)
    shape = (batch_size, CHANNELS, *sides)
    inputs = 3 + 2 * torch.randn(shape, generator=random, dtype=torch.float64)
    scale = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    shift = torch.tensor([0.0, 1.0, -3.0], dtype=torch.float64)
    gradient = torch.randn(shape, generator=random, dtype=torch.float64)
    return inputs.to(memory_format=memory_format), scale, shift, gradient


def in_training() -> RunningAverages:
    averages = RunningAverages({"norm": CHANNELS})
    averages.is_training = True
    return averages


def looped(inputs: Tensor, scale: Tensor, shift: Tensor, ghost_size: int) -> Tensor:
    outputs = []
    for start in range(0, len(inputs), ghost_size):
        ghost = inputs[start : start + ghost_size]
        mean = ghost.mean((0, 2, 3), keepdim=True)
        variance = ((ghost - mean) ** 2).mean((0, 2, 3), keepdim=True)
        normalised = (ghost - mean) / torch.sqrt(variance + 1e-5)
        outputs.append(normalised * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1))
    return torch.cat(outputs)


def gradients(outputs: Tensor, leaves: list[Tensor], gradient: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(outputs, leaves, gradient)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(
    ("batch_size", "ghost_size", "sides"),
    [
        (96, 32, (4, 5)),
        (32, 32, (4, 5)),
        (75, 32, (4, 5)),  # two ghosts and a remainder of 11
        (33, 32, (4, 5)),
        (7, 32, (4, 5)),  # less than a ghost
        (64, 32, (1, 1)),
        (6, 1, (4, 5)),
    ],
)
def test_outputs_and_gradients_equal_a_loop_over_ghosts(batch_size, ghost_size, sides, memory_format):
    inputs, scale, shift, gradient = draw(batch_size, memory_format, sides)
    leaves = [tensor.requires_grad_() for tensor in (inputs, scale, shift)]

    outputs = ghost_norm(inputs, scale, shift, "norm", in_training(), ghost_size)
    expected = looped(inputs, scale, shift, ghost_size)

    torch.testing.assert_close(outputs.detach(), expected.detach(), rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(gradients(outputs, leaves, gradient), gradients(expected, leaves, gradient), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("batch_size", [64, 43])
def test_channels_last_stays_channels_last(batch_size):
    inputs, scale, shift, _ = draw(batch_size, torch.channels_last)

    outputs = ghost_norm(inputs, scale, shift, "norm", in_training(), 32)

    assert outputs.is_contiguous(memory_format=torch.channels_last)


def test_running_averages_are_over_ghosts():
    """0.9 of where they start, 0 and 1, and 0.1 of the mean over two whole ghosts and a smaller one."""
    inputs, scale, shift, _ = draw(75)
    averages = in_training()

    ghost_norm(inputs, scale, shift, "norm", averages, 32)
    averages.commit()

    ghosts = inputs.split(32)
    mean = torch.stack([ghost.mean((0, 2, 3)) for ghost in ghosts]).mean(0)
    variance = torch.stack([ghost.var((0, 2, 3), correction=0) for ghost in ghosts]).mean(0)
    torch.testing.assert_close(averages.means["norm"], (0.1 * mean).float(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(averages.variances["norm"], (0.9 + 0.1 * variance).float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("piece_size", [32, 64])
def test_pieces_of_whole_ghosts_equal_the_batch(piece_size):
    inputs, scale, shift, _ = draw(139)
    whole, pieces = in_training(), in_training()

    expected = ghost_norm(inputs, scale, shift, "norm", whole, 32)
    outputs = torch.cat([ghost_norm(piece, scale, shift, "norm", pieces, 32) for piece in inputs.split(piece_size)])
    whole.commit()
    pieces.commit()

    torch.testing.assert_close(outputs, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(pieces.means["norm"], whole.means["norm"], rtol=1e-6, atol=0)
    torch.testing.assert_close(pieces.variances["norm"], whole.variances["norm"], rtol=1e-6, atol=0)


def test_evaluation_uses_the_running_averages_and_leaves_them_alone():
    inputs, scale, shift, _ = draw(5)
    averages = RunningAverages({"norm": CHANNELS})
    averages.means["norm"].copy_(torch.tensor([1.0, 2.0, 3.0]))
    averages.variances["norm"].copy_(torch.tensor([4.0, 1.0, 0.25]))

    outputs = ghost_norm(inputs, scale, shift, "norm", averages, 32)
    averages.commit()

    mean = torch.tensor([1.0, 2.0, 3.0]).view(1, 3, 1, 1)
    deviation = torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64).add(1e-5).sqrt().view(1, 3, 1, 1)
    expected = (inputs - mean) / deviation * scale.view(1, 3, 1, 1) + shift.view(1, 3, 1, 1)
    torch.testing.assert_close(outputs, expected, rtol=1e-10, atol=1e-10)
    assert averages.means["norm"].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("is_training", [True, False])
def test_bfloat16_inputs_give_bfloat16_outputs_and_float32_gradients(is_training):
    inputs, scale, shift, gradient = draw(64, torch.channels_last)
    leaves = [inputs.bfloat16().requires_grad_(), scale.float().requires_grad_(), shift.float().requires_grad_()]
    averages = in_training()
    averages.is_training = is_training

    outputs = ghost_norm(*leaves, "norm", averages, 32)
    to_inputs, to_scale, to_shift = gradients(outputs, leaves, gradient.bfloat16())

    exact = ghost_norm(inputs, scale, shift, "norm", averages, 32)
    assert (outputs.dtype, to_inputs.dtype, to_scale.dtype, to_shift.dtype) == (
        *(torch.bfloat16, torch.bfloat16),
        *(torch.float32, torch.float32),
    )
    torch.testing.assert_close(outputs.double(), exact, rtol=0.02, atol=0.05)


def test_a_normalisation_starts_as_one_times_plus_nothing():
    shapes = norm_shapes("norm", 7)

    assert {name: (shape.shape, shape.constant) for name, shape in shapes.items()} == {
        "norm.scale": ((7,), 1.0),
        "norm.shift": ((7,), 0.0),
    }


@pytest.mark.parametrize("leaf", ["inputs", "scale"])
def test_a_second_derivative_is_refused_not_wrong(leaf):
    """Taken through the saved statistics it was off by half, without a word."""
    inputs, scale, shift, _ = draw(8)
    tensor = {"inputs": inputs, "scale": scale}[leaf].requires_grad_()
    outputs = ghost_norm(inputs, scale, shift, "norm", in_training(), 4)
    (first,) = torch.autograd.grad(outputs.pow(3).sum(), tensor, create_graph=True)

    with pytest.raises(RuntimeError, match="differentiated twice"):
        torch.autograd.grad(first.square().sum() + tensor.square().sum(), tensor)


def test_a_first_derivative_is_the_same_with_a_graph():
    inputs, scale, shift, gradient = draw(8)
    inputs.requires_grad_()
    plain, graphed = (
        torch.autograd.grad(
            ghost_norm(inputs, scale, shift, "norm", in_training(), 4), inputs, gradient, create_graph=create_graph
        )[0]
        for create_graph in (False, True)
    )

    assert torch.equal(plain, graphed)
