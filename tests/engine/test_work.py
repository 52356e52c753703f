"""How many multiplications networks take, against counts by hand."""

from __future__ import annotations

import pytest
import torch

from batchlab.core.workload import Named
from batchlab.engine.forward import make_forward
from batchlab.engine.objectives import OBJECTIVES
from batchlab.engine.problem import Problem, Split
from batchlab.engine.work import count_multiplications
from batchlab.models.registry import build_model


def counted(name, input_shape, num_classes, num_trials=1):
    """Return the count for a network of which only the shapes are there."""
    is_text = len(input_shape) == 1
    with torch.device("meta"):
        networks = [build_model(Named(name=name), input_shape, num_classes) for _ in range(num_trials)]
        inputs = torch.zeros((2, *input_shape), dtype=torch.int64 if is_text else torch.float32)
    objective = OBJECTIVES["language_model" if is_text else "classification"]
    problem = Problem(torch.nn.Identity, objective, num_classes, Split(inputs, inputs), {}, torch.device("meta"))
    return count_multiplications(problem, make_forward(networks))


def test_multiplications_of_one_sentence_by_the_lstm():
    """For each of 64 tokens 8192 x 1536 in the gates, 2048 x 512 in the projection, 512 x 32,000 in the softmax."""
    assert counted("lstm", (64,), 32_000) == 64 * (12_582_912 + 1_048_576 + 16_384_000)


def test_multiplications_of_the_base_transformer():
    """For each of 64 tokens 6 layers of 4 x 512^2 + 2 x 512 x 2048 and 512 x 32,000; attention adds 1 or 2 %."""
    each_token = 6 * (4 * 512**2 + 2 * 512 * 2048) + 512 * 32_000

    assert each_token == 35_258_368
    assert 1 < counted("transformer_base", (64,), 32_000) / (64 * each_token) < 1.02


@pytest.mark.parametrize(
    ("name", "shape", "num_classes", "expected"),
    [
        ("resnet_50", (3, 224, 224), 1000, 4.1e9),  # commonly given for the stride in the 3x3 convolution
        ("vgg_11", (3, 224, 224), 1000, 7.61e9),  # commonly given
        (  # weights times output pixels, 32x32, 16x16 and 8x8
            "resnet_8",
            (3, 32, 32),
            10,
            1024 * 9 * (3 * 16 + 2 * 16 * 16) + 256 * 9 * (16 * 32 + 32 * 32) + 64 * 9 * (32 * 64 + 64 * 64) + 640,
        ),
    ],
)
def test_multiplications_of_networks_of_images(name, shape, num_classes, expected):
    assert counted(name, shape, num_classes) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("num_trials", [1, 3])
def test_they_are_those_of_one_trial(num_trials):
    assert counted("fc_128", (1, 8, 8), 10, num_trials) == 64 * 128 + 128 * 10
