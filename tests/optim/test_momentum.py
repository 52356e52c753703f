"""Momentum against PyTorch's own, on random gradients."""

from __future__ import annotations

import pytest
import torch

from batchlab.optim.registry import load_optimizer

METAPARAMETERS = [(0.1, 0.9), (0.01, 0.0), (1.5, 0.99)]  # learning rate and momentum of three trials


@pytest.mark.parametrize(("name", "is_nesterov"), [("momentum", False), ("nesterov_momentum", True)])
def test_momentum_equals_torch_sgd_on_random_gradients(name, is_nesterov):
    random = torch.Generator().manual_seed(0)
    start = torch.randn(3, 7, generator=random, dtype=torch.float64)
    gradients = torch.randn(50, 3, 7, generator=random, dtype=torch.float64)
    optimizer, parameters = load_optimizer(name), start.clone()
    state = optimizer.init(parameters)
    columns = torch.tensor(METAPARAMETERS, dtype=torch.float64)
    metaparameters = {"learning_rate": columns[:, :1], "momentum": columns[:, 1:]}
    theirs = [torch.nn.Parameter(row.clone()) for row in start]
    # PyTorch refuses Nesterov without momentum; there both are plain SGD.
    their_optimizers = [
        torch.optim.SGD([row], lr=rate, momentum=momentum, nesterov=is_nesterov and momentum > 0)
        for row, (rate, momentum) in zip(theirs, METAPARAMETERS, strict=True)
    ]

    for gradient in gradients:
        for row, their_optimizer, row_gradient in zip(theirs, their_optimizers, gradient, strict=True):
            row.grad = row_gradient.clone()
            their_optimizer.step()
        optimizer.update(parameters, gradient.clone(), state, metaparameters)

    expected = torch.stack([row.detach() for row in theirs])
    torch.testing.assert_close(parameters, expected, rtol=1e-12, atol=1e-12)
