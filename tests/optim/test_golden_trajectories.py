"""Three updates from given gradients: each optimizer's equations worked out in float64, apart from this code."""

from __future__ import annotations

import pytest
import torch

from batchlab.core.workload import Named
from batchlab.optim.base import Now, NowOfRow
from batchlab.optim.layout import Layout
from batchlab.optim.registry import load_optimizer

LAYOUT = Layout(("weight", "bias"), ((2, 2), (2,)))
START = [1.0, 2.0, 3.0, 4.0, 0.5, -0.5]  # W row by row, then b
GRADIENTS = [
    [0.1, -0.2, 0.3, -0.4, 0.05, 0.1],
    [0.2, 0.1, -0.1, 0.3, -0.1, 0.2],
    [-0.3, 0.2, 0.1, 0.1, 0.3, -0.05],
]
ADAM = {"learning_rate": 0.01, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0}
DECAYED = {**ADAM, "weight_decay": 0.1}
BALL = {"learning_rate": 0.1, "momentum": 0.9}
GOLDEN = {
    "sgd": ("sgd", {"learning_rate": 0.1}, [1.0, 1.99, 2.97, 4.0, 0.475, -0.525]),
    "heavy ball": ("momentum", BALL, [0.9649, 2.0152, 2.9277, 4.0414, 0.47545, -0.5601]),
    "nesterov": ("nesterov_momentum", BALL, [0.96841, 2.00368, 2.90493, 4.03726, 0.452905, -0.57909]),
    # The learning rate is outside the buffer: a new rate acts on all of the velocity.
    "heavy ball with a changing learning rate": (
        "momentum",
        {**BALL, "learning_rate": [0.1, 0.2, 0.2]},
        [0.9398, 2.0104, 2.8854, 4.0428, 0.4559, -0.6102],
    ),
    "adam": ("adam", ADAM, [0.981014171, 2.009936402, 2.981120582, 4.010316499, 0.488662399, -0.525537886]),
    "adamw": ("adamw", DECAYED, [0.978046812, 2.003919747, 2.972153571, 3.998307612, 0.487180227, -0.524009743]),
    "adam with decay": (
        "adam",
        DECAYED,
        [0.976540338, 1.983996303, 2.972198960, 3.984165715, 0.480720181, -0.521665459],
    ),
}


def tolerance(name):
    """Return what is left by the digits of the golden values."""
    return 1e-9 if name.startswith("adam") else 1e-12


def values_at(metaparameters, index):
    return {name: value[index] if isinstance(value, list) else value for name, value in metaparameters.items()}


def trajectory(name, start, gradients, columns):
    """Return [K, P] after one update for each of the gradients; columns are those of each step."""
    optimizer = load_optimizer(Named(name=name), LAYOUT)
    parameters = torch.tensor(start, dtype=torch.float64)
    state = optimizer.init(parameters)
    for step, (gradient, now) in enumerate(zip(gradients, columns, strict=True), 1):
        tensors = {key: torch.tensor(value, dtype=torch.float64)[:, None] for key, value in now.items()}
        optimizer.update(parameters, torch.tensor(gradient, dtype=torch.float64), state, Now(step, tensors))
    return parameters


@pytest.fixture(params=GOLDEN)
def golden(request):
    name, metaparameters, expected = GOLDEN[request.param]
    return name, metaparameters, torch.tensor(expected, dtype=torch.float64)


def test_one_trial_follows_the_golden_trajectory(golden):
    name, metaparameters, expected = golden
    columns = [{key: [value] for key, value in values_at(metaparameters, index).items()} for index in range(3)]

    parameters = trajectory(name, [START], [[gradient] for gradient in GRADIENTS], columns)

    torch.testing.assert_close(parameters[0], expected, rtol=0, atol=tolerance(name))


def test_a_row_by_itself_follows_the_golden_trajectory(golden):
    name, metaparameters, expected = golden
    optimizer = load_optimizer(Named(name=name), LAYOUT)
    if optimizer.update_row is None:
        pytest.skip("it has no fused form")
    row = torch.tensor(START, dtype=torch.float64)
    state = optimizer.init(row)

    for index, gradient in enumerate(GRADIENTS):
        now = NowOfRow(index + 1, values_at(metaparameters, index))
        optimizer.update_row(row, torch.tensor(gradient, dtype=torch.float64), state, now)

    torch.testing.assert_close(row, expected, rtol=0, atol=tolerance(name))


@pytest.mark.parametrize("row", [0, 2, 4])
def test_one_of_five_trials_follows_the_golden_trajectory(golden, row):
    """The four others start elsewhere, see other gradients and have other metaparameters."""
    name, metaparameters, expected = golden
    others = torch.Generator().manual_seed(row)
    start = torch.randn(5, 6, generator=others, dtype=torch.float64)
    gradients = torch.randn(3, 5, 6, generator=others, dtype=torch.float64)
    start[row] = torch.tensor(START, dtype=torch.float64)
    gradients[:, row] = torch.tensor(GRADIENTS, dtype=torch.float64)
    columns = []
    for index in range(3):
        drawn = {key: torch.rand(5, generator=others, dtype=torch.float64).tolist() for key in metaparameters}
        for key, value in values_at(metaparameters, index).items():
            drawn[key][row] = value
        columns.append(drawn)

    parameters = trajectory(name, start.tolist(), gradients.tolist(), columns)

    torch.testing.assert_close(parameters[row], expected, rtol=0, atol=tolerance(name))
