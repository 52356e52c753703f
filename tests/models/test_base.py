"""How many parameters a model has, and where training starts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from batchlab.core.seeds import Stream, generator
from batchlab.core.workload import Named
from batchlab.models.base import num_parameters
from batchlab.models.registry import build_model

DIGITS, MNIST = (1, 8, 8), (1, 28, 28)


def build(name, input_shape=DIGITS, **options):
    return build_model(Named(name=name, **options), input_shape, 10)


def start_of(name, trial):
    network = build(name)
    network.start(generator(0, Stream.INIT, trial))
    return {parameter: values.detach().numpy() for parameter, values in network.named_parameters()}


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
    for parameter, values in start_of(name, 0).items():
        assert values.dtype == np.float32
        if parameter.endswith(".bias"):
            assert not values.any()
            continue
        values, limit = values.astype(np.float64), math.sqrt(6 / sum(fans[parameter]))
        error = 4 / math.sqrt(values.size)  # four standard errors, relative to the limit
        assert np.abs(values).max() <= limit * (1 + 1e-6)
        assert np.abs(values).max() > limit * (1 - 20 / values.size)
        assert abs(values.mean()) < limit * error
        assert abs(values.var() / (limit**2 / 3) - 1) < error


def test_initial_parameters_depend_on_the_trial_alone():
    first, again, other = (start_of("fc_128", trial)["dense_0.weight"] for trial in (3, 3, 4))

    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_making_and_starting_a_network_leaves_the_random_numbers_of_torch_alone():
    before = torch.get_rng_state()

    start_of("simple_cnn_narrow", 0)

    assert torch.equal(before, torch.get_rng_state())


def test_the_kernels_of_a_convolution_lie_channels_last():
    """Drawn in the order of their memory: [O, h, w, C]."""
    network = build("resnet_8", (3, 8, 8))
    network.start(np.random.default_rng(0))

    limit = math.sqrt(6 / (9 * (3 + 16)))
    drawn = limit * (2 * np.random.default_rng(0).random((16, 3, 3, 3), np.float32) - 1)
    assert network.conv.weight.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(network.conv.weight.detach().permute(0, 2, 3, 1), drawn, rtol=1e-6)
