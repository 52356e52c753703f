"""The parameter matrix: named views of one memory, and every trial's gradient in its own row."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from batchlab.engine.parameters import ParameterMatrix, aligned
from batchlab.optim.layout import Layout

LAYOUT = Layout(("weight", "bias"), ((2, 3), (2,)))


def make_matrix(num_trials=3, **options):
    return ParameterMatrix(torch.arange(8.0 * num_trials).reshape(num_trials, 8), LAYOUT, **options)


def test_views_lie_in_the_row_one_after_the_other():
    matrix = make_matrix()

    assert matrix.views["weight"][1].tolist() == [[8.0, 9.0, 10.0], [11.0, 12.0, 13.0]]
    assert matrix.views["bias"][1].tolist() == [14.0, 15.0]


def test_a_change_of_the_matrix_is_seen_through_the_views():
    matrix = make_matrix()

    matrix.values.fill_(5)

    assert all((view == 5).all() for view in matrix.views.values())


@pytest.mark.parametrize("is_written", [False, True])
def test_each_row_of_gradients_is_of_its_own_loss(is_written):
    """loss_k = (k + 1) * sum(weight_k^2) / 2 + sum(bias_k): by hand (k + 1) weight_k and 1."""
    matrix = make_matrix(is_written=is_written)
    losses = torch.stack(
        [(k + 1) * (matrix.views["weight"][k] ** 2).sum() / 2 + matrix.views["bias"][k].sum() for k in range(3)]
    )

    matrix.differentiate(losses)

    expected = torch.cat([torch.tensor([[1.0], [2.0], [3.0]]) * matrix.values[:, :6], torch.ones(3, 2)], dim=1)
    torch.testing.assert_close(matrix.gradients, expected)


@pytest.mark.parametrize("is_written", [False, True])
def test_a_second_gradient_takes_the_place_of_the_first(is_written):
    matrix = make_matrix(1, is_written=is_written)
    for _ in range(2):
        matrix.start(num_microbatches=1)
        matrix.differentiate((matrix.views["weight"].sum() + matrix.views["bias"].sum()).reshape(1))

    assert (matrix.gradients == 1).all()


@pytest.mark.parametrize("is_written", [False, True])
def test_the_gradients_of_microbatches_are_added_up(is_written):
    matrix = make_matrix(1, is_written=is_written)

    matrix.start(num_microbatches=2)
    for _ in range(2):
        matrix.differentiate((matrix.views["weight"].sum() + matrix.views["bias"].sum()).reshape(1))

    assert (matrix.gradients == 2).all()


def test_a_parameter_without_a_gradient_keeps_none_of_an_earlier_step():
    matrix = make_matrix(1)
    matrix.differentiate((matrix.views["weight"].sum() + matrix.views["bias"].sum()).reshape(1))

    matrix.start(num_microbatches=1)
    matrix.differentiate(matrix.views["weight"].sum().reshape(1))

    assert matrix.gradients.tolist() == [[1.0] * 6 + [0.0] * 2]


def test_every_row_is_aligned_and_holds_its_values():
    matrix = aligned(torch.arange(42.0).reshape(2, 21))

    assert [matrix[row].data_ptr() % 64 for row in range(2)] == [0, 0]
    assert torch.equal(torch.arange(42.0).reshape(2, 21), matrix)


def test_networks_lie_in_the_rows_and_stay_as_they_are():
    networks = [nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(3, 2)) for _ in range(2)]
    weights = [network[0].weight.detach().clone() for network in networks]

    matrix = ParameterMatrix.of(networks)

    for row, weight in enumerate(weights):
        assert torch.equal(matrix.views["0.weight"][row], weight)
        assert torch.equal(matrix.values[row, : weight.numel()], weight.permute(0, 2, 3, 1).flatten())
        assert torch.equal(networks[row][0].weight, weight)


def test_an_adopted_network_and_its_row_are_one_memory():
    network = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(3, 2))
    matrix = ParameterMatrix.of([network])
    matrix.adopt(network)

    matrix.values.fill_(2)
    network[2].bias.data.fill_(7)
    matrix.start(num_microbatches=1)
    matrix.differentiate(network(torch.ones(1, 2, 3, 3)).sum().reshape(1))

    assert network[0].weight.unique().tolist() == [2.0]
    assert network[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert matrix.values[0, -2:].tolist() == [7.0, 7.0]
    assert matrix.gradients[0, -2:].tolist() == [1.0, 1.0]
    assert network[2].bias.grad.data_ptr() == matrix.gradients[0, -2:].data_ptr()


def test_parameters_that_are_tied_are_one_segment():
    network = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    network[1].weight = network[0].weight
    matrix = ParameterMatrix.of([network])
    matrix.adopt(network)

    matrix.values.fill_(3)

    assert matrix.layout.names == ("0.weight", "0.bias", "1.bias")
    assert network[1].weight is network[0].weight
    assert network[1].weight.unique().tolist() == [3.0]


def test_rows_that_are_kept_are_a_matrix_of_their_own():
    matrix = make_matrix(3)

    kept = matrix.keep(torch.tensor([2, 0]))
    kept.values[1].fill_(9)

    assert kept.views["bias"].tolist() == [[22.0, 23.0], [9.0, 9.0]]
    assert matrix.views["bias"].tolist() == [[6.0, 7.0], [14.0, 15.0], [22.0, 23.0]]


@pytest.mark.parametrize("is_written", [False, True])
def test_a_parameter_that_its_network_has_frozen_has_no_place(is_written):
    network = nn.Linear(3, 2)
    network.weight.requires_grad_(False)
    matrix = ParameterMatrix.of([network], is_written=is_written).keep(torch.tensor([0]))

    matrix.differentiate(matrix.views["bias"].sum(1))

    assert matrix.layout.names == ("bias",)
    assert matrix.gradients.tolist() == [[1.0, 1.0]]
