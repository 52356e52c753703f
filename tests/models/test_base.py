"""How many parameters a model has, and where training starts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from batchlab.core.seeds import Stream, generator
from batchlab.core.workload import Named
from batchlab.models.base import initial_parameters, num_parameters
from batchlab.models.registry import build_model

DIGITS, MNIST = (1, 8, 8), (1, 28, 28)


def build(name, input_shape=DIGITS, **options):
    return build_model(Named(name=name, **options), input_shape, 10)


@pytest.mark.parametrize(
    ("name", "input_shape", "expected"),
    [
        ("softmax_regression", MNIST, 784 * 10 + 10),
        ("fc_128", DIGITS, 64 * 128 + 128 + 128 * 10 + 10),
        ("fc_1024_1024", MNIST, 784 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10),
        # Two 5x5 convolutions, 7x7 pixels left of 28x28 after two poolings, a hidden layer, ten classes.
        ("simple_cnn_narrow", MNIST, 25 * 16 + 16 + 25 * 16 * 32 + 32 + 49 * 32 * 512 + 512 + 512 * 10 + 10),
        ("simple_cnn_base", MNIST, 25 * 32 + 32 + 25 * 32 * 64 + 64 + 49 * 64 * 1024 + 1024 + 1024 * 10 + 10),
        ("simple_cnn_wide", MNIST, 25 * 64 + 64 + 25 * 64 * 128 + 128 + 49 * 128 * 2048 + 2048 + 2048 * 10 + 10),
    ],
)
def test_parameters_are_as_many_as_the_layers_need(name, input_shape, expected):
    assert num_parameters(build(name, input_shape)) == expected


def test_parameters_of_the_models_in_round_numbers():
    """The same arithmetic, done outside of the test."""
    counts = {name: num_parameters(build(name, MNIST)) for name in ("softmax_regression", "simple_cnn_base")}

    assert counts == {"softmax_regression": 7_850, "simple_cnn_base": 3_274_634}
    assert num_parameters(build("fc_128")) == 9_610
    assert num_parameters(build("fc_1024_1024", MNIST)) == 1_863_690


@pytest.mark.parametrize(
    ("name", "fans"),
    [
        ("softmax_regression", {"dense_0.weight": (64, 10)}),
        ("fc_128", {"dense_0.weight": (64, 128), "dense_1.weight": (128, 10)}),
        (
            "simple_cnn_narrow",
            {
                "conv_0.weight": (25 * 1, 25 * 16),
                "conv_1.weight": (25 * 16, 25 * 32),
                "dense_0.weight": (2 * 2 * 32, 512),
                "dense_1.weight": (512, 10),
            },
        ),
    ],
)
def test_weights_start_glorot_uniform_and_biases_at_zero(name, fans):
    """Uniform between -l and l, l = sqrt(6 / (fan_in + fan_out)): its variance is l^2 / 3."""
    model = build(name)
    row, start = initial_parameters(model, generator(0, Stream.INIT, 0)), 0

    assert row.dtype == np.float32
    assert row.shape == (num_parameters(model),)
    for parameter, shape in model.shapes.items():
        values, start = row[start : start + shape.size].astype(np.float64), start + shape.size
        if parameter.endswith(".bias"):
            assert not values.any()
            continue
        limit = math.sqrt(6 / sum(fans[parameter]))
        error = 4 / math.sqrt(shape.size)  # four standard errors, relative to the limit
        assert np.abs(values).max() <= limit * (1 + 1e-6)
        assert np.abs(values).max() > limit * (1 - 20 / shape.size)
        assert abs(values.mean()) < limit * error
        assert abs(values.var() / (limit**2 / 3) - 1) < error


def test_initial_parameters_depend_on_the_trial_alone():
    model = build("fc_128")

    first, again, other = (initial_parameters(model, generator(0, Stream.INIT, trial)) for trial in (3, 3, 4))

    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
