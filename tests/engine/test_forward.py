"""The three forms in which K trials are computed: they agree, and each keeps its own memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from batchlab.engine.base import Point
from batchlab.engine.forward import Packed, Single, Vectorised, make_forward
from batchlab.engine.objectives import OBJECTIVES
from batchlab.engine.parameters import ParameterMatrix
from batchlab.engine.problem import Problem
from batchlab.engine.program import TorchProgram
from batchlab.engine.source import Split
from batchlab.models.base import Network
from batchlab.models.fully_connected import FullyConnected
from batchlab.models.layers import Dense


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
    networks = [make() for _ in range(num_trials)]
    for trial, network in enumerate(networks):
        if isinstance(network, Network):
            network.start(np.random.default_rng(trial))
    return networks


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


@pytest.mark.parametrize("num_microbatches", [1, 2])
def test_the_three_forms_train_alike(num_microbatches, drawn):
    """The same network by its packed form, vectorised, and as a module that is alone."""
    inputs, labels = drawn

    def networks():
        return networks_of(lambda: FullyConnected([6], (1, 4, 4), 5))

    def gradients(forward, trials):
        forward.parameters.start(num_microbatches)
        for rows in torch.arange(8).chunk(num_microbatches):
            logits = forward.logits(inputs[trials][:, rows])
            losses = [F.cross_entropy(*pair) for pair in zip(logits, labels[trials][:, rows], strict=True)]
            forward.parameters.differentiate(torch.stack(losses))
        return forward.parameters.gradients

    in_pack = gradients(make_forward(networks()), slice(3))
    vectorised = gradients(Vectorised(networks()[0], ParameterMatrix.of(networks()), {}), slice(3))
    alone = torch.cat(
        [gradients(Single(each, ParameterMatrix.of([each])), [trial]) for trial, each in enumerate(networks())]
    )

    torch.testing.assert_close(in_pack, alone, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(vectorised, alone, rtol=1e-5, atol=1e-6)


class Dropping(Network):
    """A network of ours without a form of its own for several trials, whose inputs are dropped by masks."""

    dropout = 0.5

    def __init__(self):
        super().__init__()
        self.dense = Dense(16, 5)

    def forward(self, images):
        pixels = images.flatten(1)
        return self.dense(pixels if self.masks is None else pixels * self.masks)


def test_masks_reach_each_of_the_trials_that_are_vectorised(drawn):
    inputs, _ = drawn
    together = make_forward(networks_of(Dropping))
    alone = [make_forward([network]) for network in networks_of(Dropping)]
    masks = torch.rand(3, 8, 16, generator=torch.Generator().manual_seed(0))

    found, without = together.logits(inputs, masks), together.logits(inputs)

    for trial, forward in enumerate(alone):
        row = slice(trial, trial + 1)
        torch.testing.assert_close(found[row], forward.logits(inputs[row], masks[row]))
        torch.testing.assert_close(without[row], forward.logits(inputs[row]))


@pytest.mark.parametrize("num_trials", [1, 3])
def test_what_a_network_has_frozen_is_kept_beside_what_is_trained(num_trials, drawn):
    inputs, labels = drawn
    networks = networks_of(Plain, num_trials)
    expected = torch.cat([network(inputs[trial])[None] for trial, network in enumerate(networks)])
    for network in networks:
        network.conv.weight.requires_grad_(False)
    forward = make_forward(networks)

    gradients = forward.parameters.layout.segments(step(forward, inputs[:num_trials], labels[:num_trials]))

    assert "conv.weight" not in gradients
    assert all(gradient.any() for gradient in gradients.values())
    assert forward.buffers["conv.weight"].shape == (num_trials, *networks[0].conv.weight.shape)
    torch.testing.assert_close(forward.logits(inputs[:num_trials]), expected)


def test_a_network_with_a_form_of_its_own_and_a_frozen_weight_trains_as_any_module():
    network = FullyConnected([4], (1, 2, 2), 3)
    next(network.parameters()).requires_grad_(False)

    assert isinstance(make_forward([network]), Single)


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
    torch.testing.assert_close(kept.logits(inputs[[0, 2]]), forward.logits(inputs)[[0, 2]])


def test_the_trials_that_are_kept_train_on_without_the_others(drawn):
    inputs, labels = drawn
    forward = make_forward(networks_of(Normalised))
    step(forward, inputs, labels)
    before = {name: buffer.clone() for name, buffer in forward.buffers.items()}

    kept = forward.keep(torch.tensor([0, 2]))
    step(kept, inputs[[0, 2]], labels[[0, 2]])
    kept.parameters.values.sub_(kept.parameters.gradients)

    assert kept.buffers["norm.num_batches_tracked"].tolist() == [2, 2]
    assert not torch.equal(kept.parameters.values, forward.parameters.values[[0, 2]])
    for name, buffer in forward.buffers.items():
        assert torch.equal(buffer, before[name])


def test_a_single_trial_is_kept_as_it_is_or_leaves_none():
    forward = make_forward(networks_of(Normalised, 1))

    assert forward.keep(torch.tensor([0])) is forward
    nobody = forward.keep(torch.tensor([], dtype=torch.int64))
    assert nobody.parameters.values.shape == (0, forward.parameters.layout.size)
    assert nobody.buffers == {}


def test_a_module_that_is_alone_and_its_row_are_one_memory(drawn):
    inputs, labels = drawn
    forward = make_forward(networks_of(Plain, 1))
    network, matrix = forward.network, forward.parameters
    slots = matrix.layout.segments(matrix.gradients)

    matrix.values.fill_(2)
    with torch.no_grad():
        network.dense.bias.fill_(7)
    step(forward, inputs[:1], labels[:1])

    assert (network.conv.weight == 2).all()
    assert network.conv.weight.is_contiguous(memory_format=torch.channels_last)
    assert matrix.values[0, -5:].tolist() == [7.0] * 5
    for name, parameter in network.named_parameters():
        assert parameter.grad.any()
        assert torch.equal(slots[name][0], parameter.grad)
    matrix.gradients.fill_(3)
    assert all((parameter.grad == 3).all() for parameter in network.parameters())


class Tied(nn.Module):
    """A network whose one weight is used twice, under two names."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
        self.second.weight = self.first.weight

    def forward(self, images):
        return self.second(self.first(images.flatten(1)).tanh())


@pytest.mark.parametrize("num_trials", [1, 3])
def test_tied_parameters_train_as_one(num_trials, drawn):
    """The gradient of the one weight is the sum over its two uses, by plain autograd of two weights."""
    inputs, networks = drawn[0][:num_trials], networks_of(Tied, num_trials)
    starts = [network.first.weight.detach().clone() for network in networks]
    forward = make_forward(networks)

    forward.parameters.differentiate(forward.logits(inputs).square().sum((1, 2)))

    assert forward.parameters.layout.names == ("first.weight",)
    for trial, start in enumerate(starts):
        weights = [start.clone().requires_grad_() for _ in range(2)]
        outputs = F.linear(F.linear(inputs[trial].flatten(1), weights[0]).tanh(), weights[1])
        expected = sum(torch.autograd.grad(outputs.square().sum(), weights))
        torch.testing.assert_close(forward.parameters.gradients[trial], expected.flatten(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("num_trials", [1, 3])
def test_evaluation_uses_the_running_statistics_and_changes_nothing(num_trials, drawn):
    inputs, labels = drawn
    forward = make_forward(networks_of(Normalised, num_trials))
    step(forward, inputs[:num_trials], labels[:num_trials])
    before = {name: buffer.clone() for name, buffer in forward.buffers.items()}

    forward.train(False)
    together, alone = forward.logits(inputs[:num_trials]), forward.logits(inputs[:num_trials, 3:4])

    torch.testing.assert_close(together[:, 3:4], alone)
    for name, buffer in forward.buffers.items():
        assert torch.equal(buffer, before[name])


@pytest.mark.parametrize("num_trials", [1, 3])
def test_what_is_done_untouched_leaves_buffers_and_random_numbers_as_they_were(num_trials, drawn):
    inputs, _ = drawn
    forward = make_forward(networks_of(Normalised, num_trials))
    before, random = {name: buffer.clone() for name, buffer in forward.buffers.items()}, torch.get_rng_state()

    with forward.untouched():
        forward.begin_step()
        forward.logits(inputs[:num_trials])
        torch.rand(1)

    assert torch.equal(torch.get_rng_state(), random)
    for name, buffer in forward.buffers.items():
        assert torch.equal(buffer, before[name])


class NormalisedDigits(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 10))


@pytest.mark.parametrize("trial_ids", [[4], [1, 4, 6]])
def test_the_buffers_of_a_batch_normalisation_are_part_of_a_programs_state(trial_ids, dataset, make_digits_study):
    def make_program():
        train = Split(torch.from_numpy(dataset.train.inputs), torch.from_numpy(dataset.train.labels))
        cpu = torch.device("cpu")
        problem = Problem(NormalisedDigits, OBJECTIVES["classification"], 10, train, {"val": train}, cpu)
        points = [Point(trial_id, {"learning_rate": 0.1, "momentum": 0.9}) for trial_id in trial_ids]
        return TorchProgram(problem, make_digits_study(), points)

    program, restored = make_program(), make_program()
    program.advance(3)
    state = program.state()
    restored.restore(state)

    assert state["buffer.2.running_mean"].shape == (len(trial_ids), 8)
    assert state["buffer.2.running_mean"].all()
    assert state["buffer.2.num_batches_tracked"].tolist() == [program.step] * len(trial_ids)
    for name, array in restored.state().items():
        assert np.array_equal(array, state[name])
    assert all(np.array_equal(values, program.evaluate()[name]) for name, values in restored.evaluate().items())
