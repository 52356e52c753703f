"""Our optimizers beside PyTorch's own, on random gradients: all trials at once, and row by row."""

from __future__ import annotations

import pytest
import torch

from batchlab.core.workload import Named
from batchlab.optim.base import Now, NowOfRow
from batchlab.optim.layout import Layout
from batchlab.optim.registry import load_optimizer

NUM_STEPS, LAYOUT = 50, Layout(("weight",), ((7,),))
BALLS = [(0.1, 0.9), (0.01, 0.0), (1.5, 0.99)]  # learning rate and momentum of three trials
ADAMS = [(0.1, 0.9, 0.999, 1e-8, 0.0), (0.01, 0.5, 0.9, 1e-3, 0.1), (1.0, 0.0, 0.99, 1e-8, 0.01)]
ADAM_NAMES = ("learning_rate", "beta_1", "beta_2", "epsilon", "weight_decay")


def ball(is_nesterov):
    def theirs(row, rate, momentum):
        # PyTorch refuses Nesterov without momentum; there both are plain SGD.
        return torch.optim.SGD([row], lr=rate, momentum=momentum, nesterov=is_nesterov and momentum > 0)

    return ("learning_rate", "momentum"), BALLS, theirs


def adam(kind):
    def theirs(row, rate, beta_1, beta_2, epsilon, decay):
        return kind([row], lr=rate, betas=(beta_1, beta_2), eps=epsilon, weight_decay=decay)

    return ADAM_NAMES, ADAMS, theirs


OPTIMIZERS = {
    "sgd": (("learning_rate",), [(0.1,), (2.0,), (1e-3,)], lambda row, rate: torch.optim.SGD([row], lr=rate)),
    "momentum": ball(is_nesterov=False),
    "nesterov_momentum": ball(is_nesterov=True),
    "adam": adam(torch.optim.Adam),
    "adamw": adam(torch.optim.AdamW),
}


@pytest.fixture
def drawn():
    random = torch.Generator().manual_seed(0)
    start = torch.randn(3, 7, generator=random, dtype=torch.float64)
    return start, torch.randn(NUM_STEPS, 3, 7, generator=random, dtype=torch.float64)


def trained_by_torch(name, start, gradients):
    _, points, theirs = OPTIMIZERS[name]
    rows = [torch.nn.Parameter(row.clone()) for row in start]
    optimizers = [theirs(row, *point) for row, point in zip(rows, points, strict=True)]
    for gradient in gradients:
        for row, optimizer, row_gradient in zip(rows, optimizers, gradient, strict=True):
            row.grad = row_gradient.clone()
            optimizer.step()
    return torch.stack([row.detach() for row in rows])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_all_trials_at_once_equal_pytorch(name, drawn):
    (start, gradients), (names, points, _) = drawn, OPTIMIZERS[name]
    optimizer, parameters = load_optimizer(Named(name=name), LAYOUT), start.clone()
    columns = torch.tensor(points, dtype=torch.float64)
    values = {key: columns[:, index : index + 1] for index, key in enumerate(names)}
    state = optimizer.init(parameters)

    for step, gradient in enumerate(gradients, 1):
        optimizer.update(parameters, gradient.clone(), state, Now(step, values))

    torch.testing.assert_close(parameters, trained_by_torch(name, start, gradients), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "sgd"])
def test_row_by_row_equals_pytorch(name, drawn):
    (start, gradients), (names, points, _) = drawn, OPTIMIZERS[name]
    optimizer, parameters = load_optimizer(Named(name=name), LAYOUT), start.clone()
    state = optimizer.init(parameters)

    for step, gradient in enumerate(gradients, 1):
        for row, point in enumerate(points):
            own = {key: tensor[row] for key, tensor in state.items()}
            now = NowOfRow(step, dict(zip(names, point, strict=True)))
            optimizer.update_row(parameters[row], gradient[row].clone(), own, now)

    torch.testing.assert_close(parameters, trained_by_torch(name, start, gradients), rtol=1e-11, atol=1e-11)
