"""ResNet-50: its size, its logits against an obvious version, and what its running averages do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from batchlab.core.workload import Named
from batchlab.engine.parameters import ParameterMatrix
from batchlab.models.averages import RunningAverages
from batchlab.models.base import initial_parameters, num_parameters
from batchlab.models.registry import build_model
from batchlab.models.resnet_50 import ResNet50


def draw(shape: tuple[int, ...], blocks: tuple[int, ...] = (1, 2), ghost_size: int = 4):
    """Return a narrow network, its parameters away from where they start, and its averages in training."""
    model, random = ResNet50(shape, 5, blocks, 2, ghost_size), np.random.default_rng(0)
    row = initial_parameters(model, random) + 0.1 * random.standard_normal(num_parameters(model))
    averages = RunningAverages(model.normalised)
    averages.is_training = True
    return model, ParameterMatrix(torch.from_numpy(row[None]), model.shapes), averages


def images(batch_size: int, shape: tuple[int, ...]) -> Tensor:
    return torch.from_numpy(np.random.default_rng(1).standard_normal((1, batch_size, *shape)))


class Obvious:
    """The network by the definition of each layer, with one ghost: plain batch normalisation."""

    def __init__(self, matrix: ParameterMatrix, blocks: tuple[int, ...], is_large: bool) -> None:
        self.row = {name: view[0].detach() for name, view in matrix.views.items()}
        self.blocks, self.is_large = blocks, is_large

    def conv(self, values: Tensor, name: str, stride: int, padding: int) -> Tensor:
        return F.conv2d(values, self.row[f"{name}.weight"].permute(0, 3, 1, 2), None, stride, padding)

    def norm_relu(self, values: Tensor, name: str) -> Tensor:
        scale, shift = self.row[f"{name}.scale"], self.row[f"{name}.shift"]
        return F.relu(F.batch_norm(values, None, None, scale, shift, training=True, eps=1e-5))

    def block(self, inputs: Tensor, name: str, stride: int, is_first: bool) -> Tensor:
        activated = self.norm_relu(inputs, f"{name}.norm_0")
        values = self.norm_relu(self.conv(activated, f"{name}.conv_0", 1, 0), f"{name}.norm_1")
        values = self.norm_relu(self.conv(values, f"{name}.conv_1", stride, 1), f"{name}.norm_2")
        shortcut = self.conv(activated, f"{name}.projection", stride, 0) if is_first else inputs
        return self.conv(values, f"{name}.conv_2", 1, 0) + shortcut

    def __call__(self, inputs: Tensor) -> Tensor:
        values = self.conv(inputs, "conv", *((2, 3) if self.is_large else (1, 1)))
        if self.is_large:
            values = F.max_pool2d(values, 3, 2, 1)
        for stage, number in enumerate(self.blocks):
            for index in range(number):
                stride = 2 if stage > 0 and index == 0 else 1
                values = self.block(values, f"stage_{stage}.block_{index}", stride, index == 0)
        values = self.norm_relu(values, "norm").mean((2, 3))
        return F.linear(values, self.row["dense.weight"], self.row["dense.bias"])


def test_parameters_for_imagenet():
    """Width w of a stage, c channels entering a block: norms 2c + 2w + 2w, convolutions cw + 9ww + 4ww."""
    expected = 7 * 7 * 3 * 64  # the stem
    channels = 64
    for number, width in ((3, 64), (4, 128), (6, 256), (3, 512)):
        expected += channels * 4 * width  # the projection
        for _ in range(number):
            expected += 2 * channels + 4 * width + channels * width + 13 * width * width
            channels = 4 * width
    expected += 2 * 2048 + 2048 * 1000 + 1000  # the last norm and the classes
    count = num_parameters(build_model(Named(name="resnet_50"), (3, 224, 224), 1000))

    assert count == expected == 25_549_352
    assert count == pytest.approx(25.5e6, rel=0.005)  # as it is commonly quoted


def test_fifty_layers_and_a_norm_before_all_convolutions_but_the_first():
    """1 + 3 * 16 convolutions and one dense layer, beside four projections; 3 * 16 + 1 norms."""
    model = build_model(Named(name="resnet_50"), (3, 224, 224), 1000)

    assert sum(name.endswith(".weight") for name in model.shapes) == 50 + 4
    assert len(model.normalised) == 49
    assert model.normalised["norm"] == 2048
    assert all(model.shapes[f"{name}.scale"].shape == (size,) for name, size in model.normalised.items())


def test_multiplications_for_imagenet():
    """4.1 thousand million, the number commonly given for the stride in the 3x3 convolution."""
    assert build_model(Named(name="resnet_50"), (3, 224, 224), 1000).multiplications == pytest.approx(4.1e9, rel=0.02)


@pytest.mark.parametrize("shape", [(3, 64, 64), (1, 9, 12), (3, 65, 63)])
def test_logits_equal_the_obvious_version(shape):
    """With one ghost. A side below 64 makes an image small: no pooling, a 3x3 stem."""
    model, matrix, averages = draw(shape)
    inputs = images(4, shape)

    logits = model.logits(matrix.views, inputs, averages=averages).detach()

    assert model.shapes["conv.weight"].shape == ((2, 7, 7, 3) if shape == (3, 64, 64) else (2, 3, 3, shape[0]))
    expected = Obvious(matrix, (1, 2), is_large=shape == (3, 64, 64))(inputs[0])
    torch.testing.assert_close(logits[0], expected, rtol=1e-9, atol=1e-9)


def test_images_of_7_by_7_go_through_four_stages():
    model, matrix, averages = draw((1, 7, 7), (1, 1, 1, 1))

    assert model.logits(matrix.views, images(3, (1, 7, 7)), averages=averages).shape == (1, 3, 5)


def differentiated(model: ResNet50, matrix: ParameterMatrix, inputs: Tensor, averages: RunningAverages) -> Tensor:
    logits = model.logits(matrix.views, inputs, averages=averages)[0]
    matrix.differentiate(F.cross_entropy(logits, torch.arange(len(logits)) % 5, reduction="sum")[None])
    return matrix.gradients.clone()


def test_pieces_of_whole_ghosts_give_the_gradients_and_averages_of_the_batch():
    model, matrix, averages = draw((1, 8, 8))
    in_pieces = RunningAverages(model.normalised)
    in_pieces.is_training = True
    inputs = images(20, (1, 8, 8)).repeat(1, 2, 1, 1, 1)  # labels repeat every 5, pieces hold 20

    expected = differentiated(model, matrix, inputs, averages)
    gradients = sum(differentiated(model, matrix, piece, in_pieces) for piece in inputs.split(20, dim=1))
    averages.commit()
    in_pieces.commit()

    torch.testing.assert_close(gradients, expected, rtol=1e-9, atol=1e-9)
    for name, values in averages.state().items():
        np.testing.assert_allclose(in_pieces.state()[name], values, rtol=1e-5, atol=1e-6)


def test_an_evaluated_example_does_not_notice_the_others():
    model, matrix, averages = draw((1, 8, 8))
    inputs = images(6, (1, 8, 8))
    trained = model.logits(matrix.views, inputs, averages=averages).detach()
    averages.commit()
    averages.is_training = False

    together = model.logits(matrix.views, inputs, averages=averages).detach()
    alone = model.logits(matrix.views, inputs[:, 2:3], averages=averages).detach()

    torch.testing.assert_close(together[:, 2:3], alone, rtol=1e-9, atol=1e-9)
    assert (together - trained).abs().max() > 0.01


def test_the_loss_falls_in_training_and_in_evaluation(losses_of):
    model = ResNet50((1, 7, 7), 5, (1, 1), 4, 32)
    matrix = ParameterMatrix(torch.from_numpy(initial_parameters(model, np.random.default_rng(0))[None]), model.shapes)
    averages = RunningAverages(model.normalised)
    inputs, labels = images(40, (1, 7, 7)).float(), torch.arange(40) % 5

    def loss(is_training: bool) -> Tensor:
        averages.is_training = is_training
        value = F.cross_entropy(model.logits(matrix.views, inputs, averages=averages)[0], labels)
        if is_training:
            averages.commit()
        return value

    before = loss(is_training=False).item()
    losses = losses_of(matrix, lambda: loss(is_training=True), 0.1, 60)

    assert losses[-1] < 0.5 * losses[0]
    assert loss(is_training=False).item() < 0.6 * before
