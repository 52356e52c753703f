"""Three updates from given gradients: the golden values of reference/large-batch-methods.md, section 3.12."""

from __future__ import annotations

import pytest
import torch

from batchlab.optim.registry import load_optimizer

START = [1.0, 2.0, 3.0, 4.0, 0.5, -0.5]  # W row by row, then b
GRADIENTS = [
    [0.1, -0.2, 0.3, -0.4, 0.05, 0.1],
    [0.2, 0.1, -0.1, 0.3, -0.1, 0.2],
    [-0.3, 0.2, 0.1, 0.1, 0.3, -0.05],
]
GOLDEN = [
    ("sgd", None, [0.1, 0.1, 0.1], [1.0, 1.99, 2.97, 4.0, 0.475, -0.525]),
    ("momentum", 0.9, [0.1, 0.1, 0.1], [0.9649, 2.0152, 2.9277, 4.0414, 0.47545, -0.5601]),
    ("nesterov_momentum", 0.9, [0.1, 0.1, 0.1], [0.96841, 2.00368, 2.90493, 4.03726, 0.452905, -0.57909]),
    # The learning rate is outside the buffer: a new rate acts on all of the velocity.
    ("momentum", 0.9, [0.1, 0.2, 0.2], [0.9398, 2.0104, 2.8854, 4.0428, 0.4559, -0.6102]),
]
IDS = ["sgd", "heavy ball", "nesterov", "heavy ball with a changing learning rate"]


def trajectory(name, start, gradients, learning_rates, momentum):
    """Return [K, P] after one update for each of the gradients; learning rates are [num_steps, K]."""
    optimizer = load_optimizer(name)
    parameters = torch.tensor(start, dtype=torch.float64)
    state = optimizer.init(parameters)
    for gradient, learning_rate in zip(gradients, learning_rates, strict=True):
        metaparameters = {"learning_rate": torch.tensor(learning_rate, dtype=torch.float64)[:, None]}
        if momentum is not None:
            metaparameters["momentum"] = torch.tensor(momentum, dtype=torch.float64)[:, None]
        optimizer.update(parameters, torch.tensor(gradient, dtype=torch.float64), state, metaparameters)
    return parameters


@pytest.mark.parametrize(("name", "momentum", "learning_rates", "expected"), GOLDEN, ids=IDS)
def test_one_trial_follows_the_golden_trajectory(name, momentum, learning_rates, expected):
    parameters = trajectory(
        name,
        [START],
        [[gradient] for gradient in GRADIENTS],
        [[learning_rate] for learning_rate in learning_rates],
        None if momentum is None else [momentum],
    )

    torch.testing.assert_close(parameters[0], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize("row", [0, 2, 4])
@pytest.mark.parametrize(("name", "momentum", "learning_rates", "expected"), GOLDEN, ids=IDS)
def test_one_of_five_trials_follows_the_golden_trajectory(name, momentum, learning_rates, expected, row):
    """The four others start elsewhere, see other gradients and have other metaparameters."""
    others = torch.Generator().manual_seed(row)
    start = torch.randn(5, 6, generator=others, dtype=torch.float64)
    gradients = torch.randn(3, 5, 6, generator=others, dtype=torch.float64)
    rates = torch.rand(3, 5, generator=others, dtype=torch.float64)
    momenta = torch.rand(5, generator=others, dtype=torch.float64)
    start[row] = torch.tensor(START, dtype=torch.float64)
    gradients[:, row] = torch.tensor(GRADIENTS, dtype=torch.float64)
    rates[:, row] = torch.tensor(learning_rates, dtype=torch.float64)
    if momentum is not None:
        momenta[row] = momentum

    parameters = trajectory(
        name, start.tolist(), gradients.tolist(), rates.tolist(), None if momentum is None else momenta.tolist()
    )

    torch.testing.assert_close(parameters[row], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)
