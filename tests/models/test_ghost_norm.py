"""Ghost batch normalisation against a loop over ghosts, one batch normalisation each."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import functional_call, vmap

from batchlab.models.ghost_norm import GhostNorm

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


def norm_of(scale: Tensor, shift: Tensor, ghost_size: int = 32) -> GhostNorm:
    norm = GhostNorm(CHANNELS, ghost_size)
    norm.scale.data, norm.shift.data = scale, shift
    return norm


def told(*means_and_variances: tuple[float, float]) -> Tensor:
    """Return one channel [1, 1, 1, 2] whose mean and variance are given, for each of some ghosts of one example."""
    rows = [[mean - variance**0.5, mean + variance**0.5] for mean, variance in means_and_variances]
    return torch.tensor(rows).view(-1, 1, 1, 2)


def of_one_channel() -> GhostNorm:
    norm = GhostNorm(1, ghost_size=1)
    norm.start(np.random.default_rng(0))
    return norm


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
    norm = norm_of(scale, shift, ghost_size)
    leaves = [inputs.requires_grad_(), norm.scale, norm.shift]

    outputs = norm(inputs)
    expected = looped(inputs, norm.scale, norm.shift, ghost_size)

    torch.testing.assert_close(outputs.detach(), expected.detach(), rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(gradients(outputs, leaves, gradient), gradients(expected, leaves, gradient), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("batch_size", [64, 43])
def test_channels_last_stays_channels_last(batch_size):
    inputs, scale, shift, _ = draw(batch_size, torch.channels_last)

    outputs = norm_of(scale, shift)(inputs)

    assert outputs.is_contiguous(memory_format=torch.channels_last)


def test_running_averages_are_over_ghosts():
    """0.9 of where they start, 0 and 1, and 0.1 of the mean over two whole ghosts and a smaller one."""
    inputs, scale, shift, _ = draw(75)
    norm = norm_of(scale, shift)

    norm(inputs)
    norm.end_step()

    ghosts = inputs.split(32)
    mean = torch.stack([ghost.mean((0, 2, 3)) for ghost in ghosts]).mean(0)
    variance = torch.stack([ghost.var((0, 2, 3), correction=0) for ghost in ghosts]).mean(0)
    torch.testing.assert_close(norm.mean, (0.1 * mean).float(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(norm.variance, (0.9 + 0.1 * variance).float(), rtol=1e-5, atol=1e-6)


def test_averages_start_at_mean_0_and_variance_1():
    norm = GhostNorm(2, 4)

    assert {name: buffer.tolist() for name, buffer in norm.named_buffers()} == {"mean": [0, 0], "variance": [1, 1]}


def test_an_update_keeps_nine_tenths_and_takes_one_of_the_mean_over_ghosts():
    norm = of_one_channel()

    norm(told((1.0, 4.0), (3.0, 8.0)))
    norm.end_step()
    norm(told((10.0, 1.0)))
    norm.end_step()

    # 0.9 * 0 + 0.1 * 2 = 0.2, then 0.9 * 0.2 + 0.1 * 10; 0.9 * 1 + 0.1 * 6 = 1.5, then 0.9 * 1.5 + 0.1 * 1.
    torch.testing.assert_close(norm.mean, torch.tensor([1.18]), rtol=1e-6, atol=0)
    torch.testing.assert_close(norm.variance, torch.tensor([1.45]), rtol=1e-6, atol=0)


def test_microbatches_make_the_same_update_as_the_whole_batch():
    """Every ghost weighs the same, so microbatches of different sizes do too."""
    whole, parts = of_one_channel(), of_one_channel()

    whole(told((1.0, 1.0), (2.0, 2.0), (6.0, 9.0)))
    parts(told((1.0, 1.0), (2.0, 2.0)))
    parts(told((6.0, 9.0)))
    whole.end_step()
    parts.end_step()

    torch.testing.assert_close(whole.mean, torch.tensor([0.3]), rtol=1e-6, atol=0)
    torch.testing.assert_close(parts.mean, torch.tensor([0.3]), rtol=1e-6, atol=0)
    torch.testing.assert_close(parts.variance, torch.tensor([0.9 + 0.4]), rtol=1e-6, atol=0)


def test_nothing_changes_before_the_end_of_a_step_and_nothing_by_a_second_end():
    norm = of_one_channel()

    norm(told((5.0, 5.0)))
    before = norm.mean.item()
    norm.end_step()
    norm.end_step()

    assert before == 0
    torch.testing.assert_close(norm.mean, torch.tensor([0.5]), rtol=1e-6, atol=0)


def test_a_step_that_was_not_finished_is_forgotten():
    norm = of_one_channel()

    norm(told((99.0, 5.0)))
    norm.begin_step()
    norm(told((5.0, 5.0)))
    norm.end_step()

    torch.testing.assert_close(norm.mean, torch.tensor([0.5]), rtol=1e-6, atol=0)


def test_averages_carry_no_gradient():
    norm = of_one_channel()

    norm(told((5.0, 5.0)).requires_grad_())
    norm.end_step()

    assert not norm.mean.requires_grad
    assert not norm.variance.requires_grad


def test_averages_go_on_from_a_state():
    norm, restored = of_one_channel(), of_one_channel()
    norm(told((1.0, 3.0)))
    norm.end_step()

    restored.load_state_dict(norm.state_dict())
    mean, variance = norm.mean.item(), norm.variance.item()
    norm(told((9.0, 9.0)))
    norm.end_step()

    assert sorted(norm.state_dict()) == ["mean", "scale", "shift", "variance"]
    assert (restored.mean.item(), restored.variance.item()) == (mean, variance)
    assert norm.mean.item() != mean


@pytest.mark.parametrize("microbatch_size", [32, 64])
def test_microbatches_of_whole_ghosts_equal_the_batch(microbatch_size):
    inputs, scale, shift, _ = draw(139)
    whole, parts = norm_of(scale, shift), norm_of(scale, shift)

    expected = whole(inputs)
    outputs = torch.cat([parts(part) for part in inputs.split(microbatch_size)])
    whole.end_step()
    parts.end_step()

    torch.testing.assert_close(outputs, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts.mean, whole.mean, rtol=1e-6, atol=0)
    torch.testing.assert_close(parts.variance, whole.variance, rtol=1e-6, atol=0)


def test_evaluation_uses_the_running_averages_and_leaves_them_alone():
    inputs, scale, shift, _ = draw(5)
    norm = norm_of(scale, shift).eval()
    norm.mean.copy_(torch.tensor([1.0, 2.0, 3.0]))
    norm.variance.copy_(torch.tensor([4.0, 1.0, 0.25]))

    outputs = norm(inputs)
    norm.end_step()

    mean = torch.tensor([1.0, 2.0, 3.0]).view(1, 3, 1, 1)
    deviation = torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64).add(1e-5).sqrt().view(1, 3, 1, 1)
    expected = (inputs - mean) / deviation * scale.view(1, 3, 1, 1) + shift.view(1, 3, 1, 1)
    torch.testing.assert_close(outputs, expected, rtol=1e-10, atol=1e-10)
    assert norm.mean.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("is_training", [True, False])
def test_bfloat16_inputs_give_bfloat16_outputs_and_float32_gradients(is_training):
    inputs, scale, shift, gradient = draw(64, torch.channels_last)
    norm, exact = norm_of(scale.float(), shift.float()).train(is_training), norm_of(scale, shift).train(is_training)
    leaves = [inputs.bfloat16().requires_grad_(), norm.scale, norm.shift]

    outputs = norm(leaves[0])
    to_inputs, to_scale, to_shift = gradients(outputs, leaves, gradient.bfloat16())

    assert (outputs.dtype, to_inputs.dtype, to_scale.dtype, to_shift.dtype) == (
        *(torch.bfloat16, torch.bfloat16),
        *(torch.float32, torch.float32),
    )
    torch.testing.assert_close(outputs.double(), exact(inputs), rtol=0.02, atol=0.05)


def test_a_normalisation_starts_as_one_times_plus_nothing():
    norm = GhostNorm(7, 4)
    norm.start(np.random.default_rng(0))

    assert {name: set(values.tolist()) for name, values in norm.named_parameters()} == {"scale": {1.0}, "shift": {0.0}}


def test_bfloat16_inputs_are_normalised_in_float32_under_a_transform_too():
    """Far from 0: statistics in bfloat16 would be off by more than the deviation."""
    inputs, scale, shift, _ = draw(64)
    far, norm = (100 + inputs).bfloat16(), norm_of(scale.float(), shift.float())

    found = vmap(norm)(far.unsqueeze(0)).squeeze(0)

    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, norm(far), rtol=0.01, atol=0.01)


@pytest.mark.parametrize("frozen", [(), ("inputs",), ("scale",), ("inputs", "shift")])
def test_the_second_derivative_was_off_by_half_without_a_word(frozen):
    """Also where some of what it is a function of are constants."""
    inputs, scale, shift, _ = draw(5, sides=(2, 2))
    norm = norm_of(scale, shift, ghost_size=4)

    def outputs(inputs: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        return functional_call(norm, {"scale": scale, "shift": shift}, (inputs,))

    given = {"inputs": inputs, "scale": scale, "shift": shift}
    leaves = tuple(each.clone().requires_grad_(name not in frozen) for name, each in given.items())
    assert torch.autograd.gradcheck(outputs, leaves)
    assert torch.autograd.gradgradcheck(outputs, leaves)


def test_a_first_derivative_is_the_same_with_a_graph():
    inputs, scale, shift, gradient = draw(8)
    norm = norm_of(scale, shift, 4)
    leaves = [inputs.requires_grad_(), norm.scale, norm.shift]

    plain, graphed = (
        torch.autograd.grad(norm(inputs), leaves, gradient, create_graph=create_graph) for create_graph in (False, True)
    )

    assert all(map(torch.equal, plain, graphed))
