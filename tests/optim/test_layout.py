"""Where parameters lie in a row."""

from __future__ import annotations

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
