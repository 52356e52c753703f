"""The parameter matrix: named views of one memory, and every trial's gradient in its own row."""

from __future__ import annotations

import torch

from batchlab.engine.parameters import ParameterMatrix, aligned
from batchlab.models.base import ParameterShape

SHAPES = {"weight": ParameterShape((2, 3), 3, 2), "bias": ParameterShape((2,))}


def make_matrix(num_trials=3):
    return ParameterMatrix(torch.arange(8.0 * num_trials).reshape(num_trials, 8), SHAPES)


def test_views_lie_in_the_row_one_after_the_other():
    matrix = make_matrix()

    assert matrix.views["weight"][1].tolist() == [[8.0, 9.0, 10.0], [11.0, 12.0, 13.0]]
    assert matrix.views["bias"][1].tolist() == [14.0, 15.0]


def test_a_change_of_the_matrix_is_seen_through_the_views():
    matrix = make_matrix()

    matrix.values.fill_(5)

    assert all((view == 5).all() for view in matrix.views.values())


def test_each_row_of_gradients_is_of_its_own_loss():
    """loss_k = (k + 1) * sum(weight_k^2) / 2 + sum(bias_k): by hand (k + 1) weight_k and 1."""
    matrix = make_matrix()
    losses = torch.stack(
        [(k + 1) * (matrix.views["weight"][k] ** 2).sum() / 2 + matrix.views["bias"][k].sum() for k in range(3)]
    )

    matrix.differentiate(losses)

    expected = torch.cat([torch.tensor([[1.0], [2.0], [3.0]]) * matrix.values[:, :6], torch.ones(3, 2)], dim=1)
    torch.testing.assert_close(matrix.gradients, expected)


def test_a_second_gradient_takes_the_place_of_the_first():
    matrix = make_matrix(1)
    for _ in range(2):
        matrix.differentiate((matrix.views["weight"].sum() + matrix.views["bias"].sum()).reshape(1))

    assert (matrix.gradients == 1).all()


def test_every_row_is_aligned_and_holds_its_values():
    matrix = aligned(torch.arange(42.0).reshape(2, 21))

    assert [matrix[row].data_ptr() % 64 for row in range(2)] == [0, 0]
    assert torch.equal(torch.arange(42.0).reshape(2, 21), matrix)
