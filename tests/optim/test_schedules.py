"""Learning rates against the formula eta_0 (1 - (1 - alpha) min(t/T, 1))."""

from __future__ import annotations

import pytest
import torch

from batchlab.optim.schedules import constant, linear_decay


def column(*values):
    return torch.tensor(values, dtype=torch.float64)[:, None]


@pytest.mark.parametrize("step", [0, 1, 10**6])
def test_constant_is_the_initial_rate_at_every_step(step):
    rates = constant({"learning_rate": column(0.1, 3.0)}, step)

    assert rates.tolist() == [[0.1], [3.0]]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (0, [0.5, 2.0]),
        (1, [0.5 * (1 - 0.9 / 10), 2.0 * (1 - 0.75 / 4)]),  # alpha 0.1, T 10; alpha 0.25, T 4
        (2, [0.5 * 0.82, 2.0 * 0.625]),
        (4, [0.5 * 0.64, 0.5]),  # the second is at its T
        (5, [0.5 * 0.55, 0.5]),  # and stays there
        (10, [0.05, 0.5]),
        (11, [0.05, 0.5]),
        (100_000, [0.05, 0.5]),
    ],
)
def test_linear_decay_falls_to_its_end_and_stays_there(step, expected):
    metaparameters = {
        "learning_rate": column(0.5, 2.0),
        "end_learning_rate_factor": column(0.1, 0.25),
        "learning_rate_decay_steps": column(10, 4),
    }

    rates = linear_decay(metaparameters, step)

    assert rates.shape == (2, 1)
    torch.testing.assert_close(rates, column(*expected), rtol=1e-14, atol=0)


def test_linear_decay_to_nothing_ends_at_exactly_zero():
    metaparameters = {
        "learning_rate": column(0.7),
        "end_learning_rate_factor": column(0.0),
        "learning_rate_decay_steps": column(3),
    }

    assert [linear_decay(metaparameters, step).item() for step in (3, 4)] == [0.0, 0.0]
