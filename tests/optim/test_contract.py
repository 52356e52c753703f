"""What every optimizer must do, from one table: a new entry of the registry is tested without a new line here."""

from __future__ import annotations

import pytest
import torch

from batchlab.optim.registry import BOUNDS, OPTIMIZERS, load_optimizer

NUM_TRIALS, NUM_PARAMETERS, NUM_STEPS = 4, 11, 6


def draw_metaparameters(name, random):
    """Return an admissible value of each metaparameter for each trial: [K, 1] columns."""
    columns = {}
    for metaparameter in OPTIMIZERS[name].metaparameters:
        bounds = BOUNDS[metaparameter]
        width = min(bounds.high, bounds.low + 1) - bounds.low
        share = 0.05 + 0.9 * torch.rand(NUM_TRIALS, 1, generator=random, dtype=torch.float64)
        columns[metaparameter] = bounds.low + width * share
    return columns


def train(name, start, gradients, metaparameters):
    optimizer, parameters = load_optimizer(name), start.clone()
    state = optimizer.init(parameters)
    for gradient in gradients:
        optimizer.update(parameters, gradient.clone(), state, metaparameters)
    return parameters, state


def draw_everything(name, seed):
    random = torch.Generator().manual_seed(seed)
    start = torch.randn(NUM_TRIALS, NUM_PARAMETERS, generator=random, dtype=torch.float64)
    gradients = torch.randn(NUM_STEPS, NUM_TRIALS, NUM_PARAMETERS, generator=random, dtype=torch.float64)
    return start, gradients, draw_metaparameters(name, random)


@pytest.fixture(params=sorted(OPTIMIZERS))
def name(request):
    return request.param


@pytest.mark.parametrize("row", range(NUM_TRIALS))
def test_a_trial_does_not_notice_the_others(name, row):
    start, gradients, metaparameters = draw_everything(name, seed=0)
    other_start, other_gradients, other_metaparameters = draw_everything(name, seed=1)
    other_start[row], other_gradients[:, row] = start[row], gradients[:, row]
    for metaparameter, column in other_metaparameters.items():
        column[row] = metaparameters[metaparameter][row]

    parameters, state = train(name, start, gradients, metaparameters)
    other_parameters, other_state = train(name, other_start, other_gradients, other_metaparameters)

    assert torch.equal(parameters[row], other_parameters[row])
    assert not torch.equal(parameters, other_parameters)
    for key in state:
        assert torch.equal(state[key][row], other_state[key][row])


@pytest.mark.parametrize("row", range(NUM_TRIALS))
def test_a_trial_alone_trains_as_it_does_among_others(name, row):
    start, gradients, metaparameters = draw_everything(name, seed=0)
    alone = {metaparameter: column[row : row + 1] for metaparameter, column in metaparameters.items()}

    together, _ = train(name, start, gradients, metaparameters)
    by_itself, _ = train(name, start[row : row + 1], gradients[:, row : row + 1], alone)

    torch.testing.assert_close(by_itself[0], together[row], rtol=1e-13, atol=1e-13)


def test_no_gradient_and_no_state_leave_the_parameters(name):
    start, gradients, metaparameters = draw_everything(name, seed=0)

    parameters, state = train(name, start, torch.zeros_like(gradients), metaparameters)

    assert torch.equal(parameters, start)
    for matrix in state.values():
        assert torch.equal(matrix, torch.zeros_like(matrix))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_state_is_matrices_of_the_parameters_shape_and_type(name, dtype):
    for matrix in load_optimizer(name).init(torch.ones(3, 5, dtype=dtype)).values():
        assert matrix.shape == (3, 5)
        assert matrix.dtype == dtype


def test_update_is_in_place(name):
    """Views of the parameter matrix stay views: the model reads what the optimizer wrote."""
    start, gradients, metaparameters = draw_everything(name, seed=0)
    optimizer, parameters = load_optimizer(name), start.clone()
    view, state = parameters[1:2, 3:], optimizer.init(parameters)
    addresses = {key: matrix.data_ptr() for key, matrix in state.items()}

    optimizer.update(parameters, gradients[0].clone(), state, metaparameters)

    assert not torch.equal(view, start[1:2, 3:])
    assert {key: matrix.data_ptr() for key, matrix in state.items()} == addresses


def test_it_goes_down_a_parabola(name):
    """The loss |theta|^2 / 2, whose gradient is theta: every trial ends far below where it began."""
    optimizer, parameters = load_optimizer(name), torch.ones(2, 3, dtype=torch.float64)
    state = optimizer.init(parameters)
    metaparameters = {
        metaparameter: torch.tensor([[0.1], [0.05]], dtype=torch.float64)
        for metaparameter in OPTIMIZERS[name].metaparameters
    }

    for _ in range(200):
        optimizer.update(parameters, parameters.clone(), state, metaparameters)

    assert parameters.abs().max() < 1e-3
