"""What every optimizer must do, from one table: a new entry of the registry is tested without a new line here."""

from __future__ import annotations

import pytest
import torch

from batchlab.core.workload import Named
from batchlab.optim.base import Now, NowOfRow
from batchlab.optim.layout import Layout
from batchlab.optim.registry import OPTIMIZERS, load_optimizer

NUM_TRIALS, NUM_PARAMETERS, NUM_STEPS = 4, 11, 6
LAYOUT = Layout(("weight", "bias"), ((3, 3), (2,)))


def optimizer_of(name):
    return load_optimizer(Named(name=name), LAYOUT)


def draw_values(name, random):
    """Return an admissible value of each metaparameter for each trial: [K, 1] columns."""
    columns = {}
    for metaparameter in OPTIMIZERS[name].metaparameters:
        bounds = metaparameter.bounds
        width = min(bounds.high, bounds.low + 1) - bounds.low
        share = 0.05 + 0.9 * torch.rand(NUM_TRIALS, 1, generator=random, dtype=torch.float64)
        columns[metaparameter.name] = bounds.low + width * share
    return columns


def train(name, start, gradients, values):
    optimizer, parameters = optimizer_of(name), start.clone()
    state = optimizer.init(parameters)
    for step, gradient in enumerate(gradients, 1):
        optimizer.update(parameters, gradient.clone(), state, Now(step, values))
    return parameters, state


def draw_everything(name, seed):
    random = torch.Generator().manual_seed(seed)
    start = torch.randn(NUM_TRIALS, NUM_PARAMETERS, generator=random, dtype=torch.float64)
    gradients = torch.randn(NUM_STEPS, NUM_TRIALS, NUM_PARAMETERS, generator=random, dtype=torch.float64)
    return start, gradients, draw_values(name, random)


@pytest.fixture(params=sorted(OPTIMIZERS))
def name(request):
    return request.param


@pytest.mark.parametrize("row", range(NUM_TRIALS))
def test_a_trial_does_not_notice_the_others(name, row):
    start, gradients, values = draw_everything(name, seed=0)
    other_start, other_gradients, other_values = draw_everything(name, seed=1)
    other_start[row], other_gradients[:, row] = start[row], gradients[:, row]
    for metaparameter, column in other_values.items():
        column[row] = values[metaparameter][row]

    parameters, state = train(name, start, gradients, values)
    other_parameters, other_state = train(name, other_start, other_gradients, other_values)

    assert torch.equal(parameters[row], other_parameters[row])
    assert not torch.equal(parameters, other_parameters)
    for key in state:
        assert torch.equal(state[key][row], other_state[key][row])


@pytest.mark.parametrize("row", range(NUM_TRIALS))
def test_a_trial_alone_trains_as_it_does_among_others(name, row):
    start, gradients, values = draw_everything(name, seed=0)
    alone = {metaparameter: column[row : row + 1] for metaparameter, column in values.items()}

    together, _ = train(name, start, gradients, values)
    by_itself, _ = train(name, start[row : row + 1], gradients[:, row : row + 1], alone)

    torch.testing.assert_close(by_itself[0], together[row], rtol=1e-13, atol=1e-13)


def test_row_by_row_is_the_same_as_all_at_once(name):
    start, gradients, values = draw_everything(name, seed=0)
    optimizer, parameters = optimizer_of(name), start.clone()
    if optimizer.update_row is None:
        pytest.skip("it has no fused form")
    state = optimizer.init(parameters)

    for step, gradient in enumerate(gradients, 1):
        for row in range(NUM_TRIALS):
            now = NowOfRow(step, {key: column[row].item() for key, column in values.items()})
            own = {key: tensor[row] for key, tensor in state.items()}
            optimizer.update_row(parameters[row], gradient[row].clone(), own, now)

    together, its_state = train(name, start, gradients, values)
    torch.testing.assert_close(parameters, together, rtol=1e-12, atol=1e-12)
    for key, tensor in its_state.items():
        torch.testing.assert_close(state[key], tensor, rtol=1e-12, atol=1e-12)


def test_no_gradient_and_no_decay_leave_the_parameters(name):
    start, gradients, values = draw_everything(name, seed=0)
    without_decay = {key: torch.zeros_like(column) if "decay" in key else column for key, column in values.items()}

    parameters, _ = train(name, start, torch.zeros_like(gradients), without_decay)

    assert torch.equal(parameters, start)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_state_has_a_trial_in_each_entry_and_the_parameters_type(name, dtype):
    for tensor in optimizer_of(name).init(torch.ones(3, NUM_PARAMETERS, dtype=dtype)).values():
        assert len(tensor) == 3
        assert tensor.dtype == dtype


def test_update_is_in_place(name):
    """Views of the parameter matrix stay views: the model reads what the optimizer wrote."""
    start, gradients, values = draw_everything(name, seed=0)
    optimizer, parameters = optimizer_of(name), start.clone()
    view, state = parameters[1:2, 3:], optimizer.init(parameters)
    addresses = {key: tensor.data_ptr() for key, tensor in state.items()}

    optimizer.update(parameters, gradients[0].clone(), state, Now(1, values))

    assert not torch.equal(view, start[1:2, 3:])
    assert {key: tensor.data_ptr() for key, tensor in state.items()} == addresses


def test_it_goes_down_a_parabola(name):
    """The loss |theta|^2 / 2, whose gradient is theta: every trial ends far below where it began."""
    optimizer, parameters = optimizer_of(name), torch.ones(2, 3, dtype=torch.float64)
    state = optimizer.init(parameters)
    rates, of_two = torch.tensor([[0.1], [0.05]], dtype=torch.float64), torch.ones(2, 1, dtype=torch.float64)
    values = {
        each.name: rates if each.default is None else each.default * of_two for each in OPTIMIZERS[name].metaparameters
    }

    for step in range(1, 301):
        optimizer.update(parameters, parameters.clone(), state, Now(step, values))

    assert parameters.abs().max() < 0.02
