"""Where parameters lie in a row."""

from __future__ import annotations

import pytest
import torch

from batchlab.optim.layout import Layout

LAYOUT = Layout(("kernel", "bias", "scalar"), ((2, 3, 1, 2), (2,), ()))


def test_segments_follow_each_other():
    assert LAYOUT.starts == (0, 12, 14, 15)
    assert LAYOUT.size == 15


def test_segments_are_views_of_every_row():
    matrix = torch.arange(30.0).reshape(2, 15)

    segments = LAYOUT.segments(matrix)
    segments["bias"][1] = -1

    assert {name: tuple(segment.shape) for name, segment in segments.items()} == {
        "kernel": (2, 2, 3, 1, 2),
        "bias": (2, 2),
        "scalar": (2,),
    }
    assert matrix[1, 12:14].tolist() == [-1, -1]
    assert segments["scalar"].tolist() == [14, 29]


def test_kernels_lie_channels_last():
    """[O, C, h, w] as it is seen, [O, h, w, C] as it lies."""
    matrix = torch.arange(15.0).reshape(1, 15)

    kernel = LAYOUT.segments(matrix)["kernel"][0]

    assert kernel[0, :, 0, 0].tolist() == [0, 1, 2]
    assert kernel[0, 0, 0].tolist() == [0, 3]


def test_the_layout_of_parameters_is_in_their_order():
    parameters = {"b": torch.zeros(2, 3), "a": torch.zeros(4)}

    assert Layout.of(parameters) == Layout(("b", "a"), ((2, 3), (4,)))


def test_kernels_are_contiguous_as_the_network_sees_them():
    kernel = LAYOUT.segments(torch.zeros(2, 15))["kernel"][1]

    assert kernel.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("name", LAYOUT.names)
def test_a_segment_is_all_of_its_columns_and_no_other(name):
    matrix, place = torch.zeros(3, 15), LAYOUT.names.index(name)

    LAYOUT.segments(matrix)[name][1].fill_(1)

    expected = torch.zeros(3, 15)
    expected[1, LAYOUT.starts[place] : LAYOUT.starts[place + 1]] = 1
    assert torch.equal(matrix, expected)


def test_segments_of_rows_that_are_padded_are_views_too():
    wide = torch.zeros(2, 32)

    for segment in LAYOUT.segments(wide[:, :15]).values():
        segment.fill_(1)

    assert (wide[:, :15] == 1).all()
    assert not wide[:, 15:].any()


def test_a_network_without_parameters_takes_no_columns():
    empty = Layout.of({})

    assert (empty.starts, empty.size) == ((0,), 0)
    assert empty.segments(torch.zeros(2, 0)) == {}
