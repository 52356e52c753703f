"""The three forms in which K trials are computed: they agree, and each keeps its own memory."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from batchlab.engine.forward import Packed, Single, Vectorised, make_forward
from batchlab.models.fully_connected import FullyConnected


class Plain(nn.Module):
    """A module of the user's own, with a convolution."""

    def __init__(self):
        super().__init__()
        self.conv, self.dense = nn.Conv2d(1, 3, 3), nn.Linear(3 * 4, 5)

    def forward(self, images):
        return self.dense(self.conv(images).relu().flatten(1))


class Normalised(nn.Module):
    """One with buffers, which a training pass changes."""

    def __init__(self):
        super().__init__()
        self.dense_0, self.norm, self.dense_1 = nn.Linear(16, 6), nn.BatchNorm1d(6), nn.Linear(6, 5)

    def forward(self, images):
        return self.dense_1(self.norm(self.dense_0(images.flatten(1))).relu())


@pytest.fixture
def drawn():
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(3, 8, 1, 4, 4, generator=random)
    return inputs, torch.randint(0, 5, (3, 8), generator=random)


def networks_of(make, num_trials=3):
    torch.manual_seed(0)
    return [make().double().float() for _ in range(num_trials)]


def step(forward, inputs, labels):
    """Return the gradients of one training step."""
    forward.parameters.start(num_microbatches=1)
    forward.begin_step()
    logits = forward.logits(inputs)
    forward.parameters.differentiate(torch.stack([F.cross_entropy(*pair) for pair in zip(logits, labels, strict=True)]))
    forward.end_step()
    return forward.parameters.gradients.clone()


@pytest.mark.parametrize("make", [Plain, Normalised])
def test_trials_that_are_vectorised_train_as_they_do_alone(make, drawn):
    inputs, labels = drawn
    together = make_forward(networks_of(make))
    alone = [make_forward([network]) for network in networks_of(make)]

    gradients = step(together, inputs, labels)

    assert isinstance(together, Vectorised)
    for trial, forward in enumerate(alone):
        assert isinstance(forward, Single)
        expected = step(forward, inputs[trial : trial + 1], labels[trial : trial + 1])
        torch.testing.assert_close(gradients[trial], expected[0], rtol=1e-5, atol=1e-6)
        for name, buffer in forward.buffers.items():
            torch.testing.assert_close(together.buffers[name][trial], buffer[0])


def test_a_network_with_a_form_of_its_own_is_packed_by_it_also_when_it_is_alone():
    for num_trials in (1, 3):
        networks = [FullyConnected([4], (1, 2, 2), 3) for _ in range(num_trials)]

        assert isinstance(make_forward(networks), Packed)


@pytest.mark.parametrize("make", [Plain, Normalised, lambda: FullyConnected([4], (1, 4, 4), 5)])
def test_some_trials_are_kept_with_all_that_is_theirs(make, drawn):
    inputs, labels = drawn
    forward = make_forward(networks_of(make))
    step(forward, inputs, labels)
    buffers = {name: buffer.clone() for name, buffer in forward.buffers.items()}

    kept = forward.keep(torch.tensor([0, 2]))

    assert torch.equal(kept.parameters.values, forward.parameters.values[[0, 2]])
    for name, buffer in kept.buffers.items():
        assert torch.equal(buffer, buffers[name][[0, 2]])
    assert kept.logits(inputs[[0, 2]]).shape == (2, 8, 5)


def test_evaluation_uses_the_running_statistics_and_changes_nothing(drawn):
    inputs, labels = drawn
    forward = make_forward(networks_of(Normalised, 1))
    step(forward, inputs[:1], labels[:1])
    before = {name: buffer.clone() for name, buffer in forward.buffers.items()}

    forward.train(False)
    together, alone = forward.logits(inputs[:1]), forward.logits(inputs[:1, 3:4])

    torch.testing.assert_close(together[:, 3:4], alone)
    for name, buffer in forward.buffers.items():
        assert torch.equal(buffer, before[name])


def test_what_is_done_untouched_leaves_the_buffers_as_they_were(drawn):
    inputs, _ = drawn
    forward = make_forward(networks_of(Normalised, 1))
    before = {name: buffer.clone() for name, buffer in forward.buffers.items()}

    with forward.untouched():
        forward.begin_step()
        forward.logits(inputs[:1])

    for name, buffer in forward.buffers.items():
        assert torch.equal(buffer, before[name])
