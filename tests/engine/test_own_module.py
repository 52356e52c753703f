"""A module of the user's own: its own start, buffers, modes and random numbers, repeated and resumed to the bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from batchlab.core.seeds import Stream
from batchlab.engine.base import Point
from batchlab.engine.global_random import torch_seed
from batchlab.engine.microbatch import ghost_size_of
from batchlab.engine.objectives import OBJECTIVES
from batchlab.engine.order import ExampleOrder
from batchlab.engine.problem import Problem
from batchlab.engine.program import TorchProgram
from batchlab.engine.source import Split
from batchlab.models.ghost_norm import GhostNorm
from tests.states import equal, trained

POINT = Point(3, {"learning_rate": 0.1, "momentum": 0.9})
LAST = 12


class Own(nn.Module):
    """BatchNorm, dropout and a learned embedding of the class of brightness."""

    def __init__(self):
        super().__init__()
        self.dense_0, self.norm, self.dropout = nn.Linear(64, 20), nn.BatchNorm1d(20), nn.Dropout(0.3)
        self.embedding, self.dense_1 = nn.Embedding(4, 20), nn.Linear(20, 10)

    def forward(self, images):
        pixels = images.flatten(1)
        brightness = (pixels.mean(1) * 8).long().clamp(0, 3)
        return self.dense_1(self.dropout(self.norm(self.dense_0(pixels)).relu() + self.embedding(brightness)))


@pytest.fixture
def make_program(dataset, make_digits_study):
    def split(examples):
        return Split(torch.from_numpy(examples.inputs), torch.from_numpy(examples.labels))

    def make(seed=0, point=POINT, make_network=Own, microbatch_size="auto", **changes):
        study = make_digits_study(batch_size=32, seed=seed, **changes)
        objective, cpu = OBJECTIVES["classification"], torch.device("cpu")
        problem = Problem(make_network, objective, 10, split(dataset.train), {"val": split(dataset.val)}, cpu)
        return TorchProgram(problem, study, [point], microbatch_size=microbatch_size)

    return make


def test_it_starts_as_its_class_says(make_program):
    state = make_program().state()

    scale = 64 * 20 + 20  # where the scale of the norm lies in the row
    assert state["parameters"][0, scale : scale + 20].tolist() == [1.0] * 20
    assert state["buffer.norm.running_var"].tolist() == [[1.0] * 20]


def test_its_start_is_what_pytorch_draws_from_the_seed_of_its_trial(make_program):
    state = make_program(seed=5).state()

    torch.manual_seed(torch_seed(5, Stream.INIT, POINT.trial_id))
    expected = nn.utils.parameters_to_vector(Own().parameters()).detach()
    assert np.array_equal(state["parameters"][0], expected)


def test_its_start_depends_on_seed_and_trial_alone(make_program):
    first, other_seed, other_trial = (
        make_program().state(),
        make_program(seed=1).state(),
        make_program(point=Point(4, POINT.metaparameters)).state(),
    )
    torch.manual_seed(99)

    assert equal(make_program().state(), first)
    assert not np.array_equal(first["parameters"], other_seed["parameters"])
    assert not np.array_equal(first["parameters"], other_trial["parameters"])


def test_it_learns_and_two_runs_are_equal(make_program):
    program, again = make_program(), make_program()
    before = program.evaluate()["val/cross_entropy_error"]

    state = trained(program, 60)
    torch.manual_seed(99)

    assert equal(trained(again, 60), state)
    assert program.evaluate()["val/cross_entropy_error"] < 0.5 * before


@pytest.mark.parametrize("stop", range(LAST))
def test_it_goes_on_from_any_step_with_equal_bits(make_program, stop):
    whole = trained(make_program(), LAST)
    stopped = trained(make_program(), stop)
    torch.manual_seed(stop)

    resumed = make_program()
    resumed.restore(stopped)

    assert equal(trained(resumed, LAST), whole)


def test_its_dropout_differs_from_step_to_step(make_program):
    program, masks = make_program(), []
    program._forward.network.dropout.register_forward_hook(
        lambda module, inputs, output: masks.append(output == 0) if module.training else None
    )

    trained(program, 3)

    assert not torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[1], masks[2])


def test_what_it_draws_depends_on_seed_trial_and_step_alone(make_program):
    drawn = set()

    class Drawing(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense = nn.Linear(64, 10)

        def forward(self, images):
            if self.training:
                drawn.add(torch.rand(()).item())
            return self.dense(images.flatten(1))

    for trial_id, seed in ((3, 0), (4, 0), (3, 1), (3, 0)):
        program = make_program(seed, Point(trial_id, POINT.metaparameters), Drawing, microbatch_size=32)
        trained(program, 2)

    assert len(drawn) == 3 * 2


def test_its_batch_normalisation_notes_every_microbatch(make_program):
    """A batch of 32 in microbatches of 12 is three of them; what is tried out before the first step does not count."""
    state = trained(make_program(microbatch_size=12), 4)

    assert state["buffer.norm.num_batches_tracked"].tolist() == [4 * 3]


def test_evaluation_is_that_of_the_module_in_evaluation_mode(make_program, dataset):
    """Running statistics and no dropout: as if anybody had trained it."""
    program, network = make_program(), Own().eval()
    state = trained(program, 20)
    nn.utils.vector_to_parameters(torch.from_numpy(state["parameters"][0]), network.parameters())
    for name, buffer in network.named_buffers():
        buffer.copy_(torch.from_numpy(state[f"buffer.{name}"])[0])

    metrics = program.evaluate()

    logits, labels = network(torch.from_numpy(dataset.val.inputs)), torch.from_numpy(dataset.val.labels)
    assert metrics["val/cross_entropy_error"] == pytest.approx(F.cross_entropy(logits, labels).item(), rel=1e-5)
    assert metrics["val/classification_error"] == pytest.approx((logits.argmax(1) != labels).double().mean().item())


def test_looking_on_the_way_changes_nothing_of_what_follows(make_program):
    looked, straight = make_program(), make_program()

    for step in range(1, LAST + 1):
        trained(looked, step)
        looked.evaluate()

    assert equal(looked.state(), trained(straight, LAST))


def test_evaluation_changes_nothing_and_is_repeated_to_the_bit(make_program):
    program = make_program()
    before = trained(program, 5)

    first, second = program.evaluate(), program.evaluate()

    assert first == second
    assert equal(program.state(), before)


def test_the_random_numbers_of_the_caller_are_left_alone(make_program):
    torch.manual_seed(7)
    before = torch.get_rng_state()

    trained(make_program(), 3)

    assert torch.equal(torch.get_rng_state(), before)


class WithGhosts(nn.Module):
    """Our ghost normalisation in a module that is none of ours."""

    def __init__(self):
        super().__init__()
        self.convolution, self.norm, self.dense = nn.Conv2d(1, 4, 3), GhostNorm(4, ghost_size=8), nn.Linear(4 * 36, 10)

    def forward(self, images):
        return self.dense(self.norm(self.convolution(images)).relu().flatten(1))


@pytest.mark.parametrize("microbatch_size", [32, 8])
def test_its_ghost_normalisation_updates_its_averages_once_in_a_step(make_program, dataset, microbatch_size):
    program = make_program(make_network=WithGhosts, microbatch_size=microbatch_size)
    network = program._problem.network(0, POINT.trial_id)
    numbers = ExampleOrder(len(dataset.train), 0, POINT.trial_id).take(0, 32)
    seen = network.convolution(torch.from_numpy(dataset.train.inputs[numbers])).detach()
    of_ghosts = seen.unflatten(0, (4, 8)).transpose(1, 2).flatten(2)  # [4 ghosts, channels, values]

    state = trained(program, 1)

    expected = 0.1 * of_ghosts.mean(2).mean(0), 0.9 + 0.1 * of_ghosts.var(2, correction=0).mean(0)
    assert (network.norm.scale == 1).all()
    np.testing.assert_allclose(state["buffer.norm.mean"][0], expected[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(state["buffer.norm.variance"][0], expected[1], rtol=1e-4)


def test_microbatches_of_its_ghosts_are_whole_ghosts():
    assert ghost_size_of(WithGhosts()) == 8
    assert ghost_size_of(nn.Sequential(WithGhosts(), GhostNorm(2, ghost_size=12))) == 24
    assert ghost_size_of(Own()) == 1


class WithAllKinds(nn.Module):
    """A convolution, whose weight lies channels-last; an embedding with sparse gradients; what is never used."""

    def __init__(self):
        super().__init__()
        self.conv, self.dense = nn.Conv2d(1, 4, 3), nn.Linear(4 * 36, 10)
        self.embedding, self.unused = nn.Embedding(4, 10, sparse=True), nn.Parameter(torch.ones(5))

    def forward(self, images):
        brightness = (images.mean((1, 2, 3)) * 8).long().clamp(0, 3)
        return self.dense(self.conv(images.reshape(-1, 1, 8, 8)).relu().flatten(1)) + self.embedding(brightness)


@pytest.mark.parametrize("microbatch_size", [16, 5])
@pytest.mark.parametrize("optimizer", ["momentum", "nesterov_momentum", "adam", "adamw"])
def test_gradients_that_stay_where_they_are_made_train_as_those_in_the_row(
    make_program, monkeypatch, optimizer, microbatch_size
):
    """To rounding: an update of its own may end with other instructions at the end of a parameter."""
    monkeypatch.setattr("batchlab.engine.updating.ROW_BY_ROW", 1)
    adaptive = {"learning_rate": 0.01, "beta_1": 0.9, "beta_2": 0.99, "epsilon": 1e-8, "weight_decay": 0.1}
    point = Point(3, adaptive) if optimizer.startswith("adam") else POINT
    options = {"make_network": WithAllKinds, "optimizer": optimizer, "point": point, "microbatch_size": microbatch_size}
    gathered = make_program(**options)
    monkeypatch.setattr("batchlab.engine.parameters.SCATTERED", 1)
    scattered = make_program(**options)

    row, parts = trained(gathered, LAST), trained(scattered, LAST)

    assert (gathered._parameters.is_scattered, scattered._parameters.is_scattered) == (False, True)
    np.testing.assert_allclose(parts["parameters"], row["parameters"], rtol=1e-5, atol=1e-7)


class OneWide(nn.Module):
    """All its parameters are one tensor: large enough to stay where autograd makes it, and too small for a kernel."""

    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(64, 1100, bias=False)

    def forward(self, images):
        return self.wide(images.flatten(1)).unflatten(1, (10, 110)).mean(2)


def test_a_network_of_one_large_parameter_learns(make_program):
    program = make_program(make_network=OneWide)
    before = program.state()["parameters"]

    program.advance(1)

    assert np.mean(program.state()["parameters"] != before) > 0.5
