"""ResNet-50: its size, its logits against an obvious version, and what its running averages do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from batchlab.core.workload import Named
from batchlab.models.base import num_parameters
from batchlab.models.ghost_norm import GhostNorm
from batchlab.models.registry import build_model
from batchlab.models.resnet_50 import ResNet50


def narrow(shape: tuple[int, ...], blocks: tuple[int, ...] = (1, 2), ghost_size: int = 4) -> ResNet50:
    return ResNet50(shape, 5, blocks, 2, ghost_size)


def images(batch_size: int, shape: tuple[int, ...]) -> Tensor:
    return torch.from_numpy(np.random.default_rng(1).standard_normal((batch_size, *shape)))


class Obvious:
    """The network by the definition of each layer, with one ghost: plain batch normalisation."""

    def __init__(self, network: ResNet50, blocks: tuple[int, ...], is_large: bool) -> None:
        self.row = {name: parameter.detach() for name, parameter in network.named_parameters()}
        self.blocks, self.is_large = blocks, is_large

    def conv(self, values: Tensor, name: str, stride: int, padding: int) -> Tensor:
        return F.conv2d(values, self.row[f"{name}.weight"], None, stride, padding)

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

    norms = [module for module in model.modules() if isinstance(module, GhostNorm)]
    assert sum(name.endswith(".weight") for name, _ in model.named_parameters()) == 50 + 4
    assert len(norms) == 49
    assert norms[-1] is model.norm
    assert model.norm.scale.shape == (2048,)
    assert {norm.ghost_size for norm in norms} == {32}


@pytest.mark.parametrize("shape", [(3, 64, 64), (1, 9, 12), (3, 65, 63)])
def test_logits_equal_the_obvious_version(shape, started):
    """With one ghost. A side below 64 makes an image small: no pooling, a 3x3 stem."""
    network, is_large = started(narrow(shape), noise=0.1), shape == (3, 64, 64)
    inputs = images(4, shape)

    logits = network(inputs).detach()

    assert network.conv.weight.shape == ((2, 3, 7, 7) if is_large else (2, shape[0], 3, 3))
    torch.testing.assert_close(logits, Obvious(network, (1, 2), is_large)(inputs), rtol=1e-9, atol=1e-9)


def test_images_of_7_by_7_go_through_four_stages(started):
    network = started(narrow((1, 7, 7), (1, 1, 1, 1)))

    assert network(images(3, (1, 7, 7))).shape == (3, 5)


def trained(network: ResNet50, inputs: Tensor, microbatch_size: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return gradients and running averages of one step; labels repeat every 5."""
    network.begin_step()
    for part in inputs.split(microbatch_size):
        F.cross_entropy(network(part), torch.arange(len(part)) % 5, reduction="sum").backward()
    network.end_step()
    return [parameter.grad for parameter in network.parameters()], list(network.buffers())


def test_microbatches_of_whole_ghosts_give_the_gradients_and_averages_of_the_batch(started):
    inputs = images(20, (1, 8, 8)).repeat(2, 1, 1, 1)

    gradients, averages = trained(started(narrow((1, 8, 8)), noise=0.1), inputs, 40)
    its_gradients, its_averages = trained(started(narrow((1, 8, 8)), noise=0.1), inputs, 20)

    for ours, theirs in zip(its_gradients, gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(its_averages, averages, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_an_evaluated_example_does_not_notice_the_others(started):
    network, inputs = started(narrow((1, 8, 8)), noise=0.1), images(6, (1, 8, 8))
    trained = network(inputs).detach()
    network.end_step()
    network.eval()

    together, alone = network(inputs).detach(), network(inputs[2:3]).detach()

    torch.testing.assert_close(together[2:3], alone, rtol=1e-9, atol=1e-9)
    assert (together - trained).abs().max() > 0.01


def test_the_loss_falls_in_training_and_in_evaluation(started, losses_of):
    network = started(ResNet50((1, 7, 7), 5, (1, 1), 4, 32), noise=0.0, dtype=torch.float32)
    inputs, labels = images(40, (1, 7, 7)).float(), torch.arange(40) % 5

    def loss(is_training: bool) -> Tensor:
        value = F.cross_entropy(network.train(is_training)(inputs), labels)
        network.end_step()
        return value

    before = loss(is_training=False).item()
    losses = losses_of(network, lambda: loss(is_training=True), 0.1, 60)

    assert losses[-1] < 0.5 * losses[0]
    assert loss(is_training=False).item() < 0.6 * before
