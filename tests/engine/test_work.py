"""How many multiplications networks take, against counts by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from batchlab.core.workload import Named
from batchlab.engine.forward import make_forward
from batchlab.engine.objectives import OBJECTIVES
from batchlab.engine.problem import Problem
from batchlab.engine.source import Split
from batchlab.engine.work import count_multiplications
from batchlab.models.registry import build_model


def problem_of(input_shape, device="cpu"):
    is_text = len(input_shape) == 1
    inputs = torch.zeros((2, *input_shape), dtype=torch.int64 if is_text else torch.float32, device=device)
    objective = OBJECTIVES["language_model" if is_text else "classification"]
    return Problem(nn.Identity, objective, 10, Split(inputs, inputs), {}, torch.device(device))


def counted(name, input_shape, num_classes, num_trials=1, device="meta"):
    """Return the count for a network of which, on `meta`, only the shapes are there."""
    with torch.device(device):
        networks = [build_model(Named(name=name), input_shape, num_classes) for _ in range(num_trials)]
    return count_multiplications(problem_of(input_shape, device), make_forward(networks))


def test_multiplications_of_one_sentence_by_the_lstm():
    """For each of 64 tokens 8192 x 1536 in the gates, 2048 x 512 in the projection, 512 x 32,000 in the softmax."""
    assert counted("lstm", (64,), 32_000) == 64 * (12_582_912 + 1_048_576 + 16_384_000)


def test_multiplications_of_the_base_transformer():
    """For each of 64 tokens 6 layers of 4 x 512^2 + 2 x 512 x 2048 and 512 x 32,000; attention adds 1 %.

    On a processor: elsewhere, products that the mask leaves out are counted too.
    """
    each_token = 6 * (4 * 512**2 + 2 * 512 * 2048) + 512 * 32_000
    found = counted("transformer_base", (64,), 32_000, device="cpu")

    assert each_token == 35_258_368
    assert 1 < found / (64 * each_token) < 1.01
    assert found == 64 * each_token + 6 * 64 * 65 * 512  # scores and sums, of the tokens up to each one
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


@pytest.mark.parametrize("num_trials", [1, 3])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_multiplications_of_the_simple_cnn(num_trials, device):
    """Weights times output pixels, 28x28 and 14x14 before pooling, and the two dense layers."""
    expected = 28**2 * 25 * 32 + 14**2 * 25 * 32 * 64 + 49 * 64 * 1024 + 1024 * 10

    assert counted("simple_cnn_base", (1, 28, 28), 10, num_trials, device) == expected


class Noisy(nn.Module):
    """A network of the user's own that draws, counts its passes and normalises."""

    def __init__(self):
        super().__init__()
        self.dense, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(3)
        self.register_buffer("passes", torch.zeros(()))

    def forward(self, images):
        self.passes += 1
        return self.norm(self.dense(images.flatten(1))) + torch.rand(())


def test_multiplications_of_a_network_of_ones_own():
    assert count_multiplications(problem_of((1, 2, 2)), make_forward([Noisy()])) == 4 * 3


def test_trials_that_are_vectorised_count_as_one():
    networks = [nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)) for _ in range(3)]

    assert count_multiplications(problem_of((1, 2, 2)), make_forward(networks)) == 4 * 5 + 5 * 3


def test_counting_leaves_no_trace():
    forward = make_forward([Noisy()])
    before = {name: buffer.clone() for name, buffer in forward.buffers.items()}
    random = torch.get_rng_state()

    count_multiplications(problem_of((1, 2, 2)), forward)

    assert forward.network.training
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(buffer, before[name]) for name, buffer in forward.buffers.items())
