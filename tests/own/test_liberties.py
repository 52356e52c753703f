"""Modules that take liberties: they change what they are given, draw from any generator, normalise over the batch."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from batchlab.engine.base import Point
from batchlab.errors import TrainerError
from tests.states import equal

POINT = Point(0, {"learning_rate": 0.05})


class Head(nn.Module):
    """A linear layer after whatever `before` makes of the inputs."""

    def __init__(self, before):
        super().__init__()
        self.before, self.layer = before, nn.Linear(2, 2)

    def forward(self, points):
        return self.layer(self.before(self, points))


def in_place(module, points):
    points -= 1.0
    return points


def dropped(module, points):
    return F.dropout(points, 0.5)  # also while it is evaluated


def dropped_layer(module, points):
    return points if random.random() < 0.5 else -points


def noisy(module, points):
    return points + torch.from_numpy(np.random.standard_normal(points.shape)).float()  # noqa: NPY002


def program_of(own, state=None):
    return own.make_trainer().program(own.spec.study(16), [POINT], state)


def head(before):
    """Return a model whose class has a name."""
    return lambda: Head(before)


def test_what_a_module_does_to_its_inputs_leaves_the_examples_as_they_were(make_own):
    points = (torch.randn(50, 2), torch.randint(0, 2, (50,)))
    splits = {"every": 1, "splits": ["train", "val"]}
    own = make_own(optimizer="sgd", model=head(in_place), evaluate=splits, train=points, val=points)
    program = program_of(own)

    first = program.evaluate()
    assert first == program.evaluate() == program.evaluate()
    assert first == program_of(own).evaluate()


@pytest.mark.parametrize("before", [dropped, dropped_layer, noisy])
def test_what_a_module_draws_is_the_same_each_time_whatever_it_draws_from(make_own, before):
    def states():
        program = program_of(make_own(optimizer="sgd", model=head(before)))
        evaluated = [program.evaluate()["val/loss"].item() for _ in range(2)]
        random.random(), np.random.random(), torch.rand(1)  # noqa: NPY002
        program.advance(3)
        return evaluated, program.state()

    (first, state), (again, state_again) = states(), states()

    assert first[0] == first[1] == again[0]
    assert equal(state, state_again)


def test_the_generators_of_a_prompt_are_as_they_were(make_own):
    random.seed(1), np.random.seed(2), torch.manual_seed(3)  # noqa: NPY002
    expected = random.random(), np.random.random(), torch.rand(1).item()  # noqa: NPY002
    random.seed(1), np.random.seed(2), torch.manual_seed(3)  # noqa: NPY002
    program = program_of(make_own(optimizer="sgd", model=head(noisy)))
    program.advance(2)
    program.evaluate()

    assert expected == (random.random(), np.random.random(), torch.rand(1).item())  # noqa: NPY002


def test_a_batch_is_normalised_and_summed_whole_however_large_it_is(make_own, monkeypatch):
    """It was cut where its activations took more than 128 MB: here, for the test, more than nothing."""
    monkeypatch.setattr("batchlab.engine.microbatch.CPU_BYTES", 1)
    seen = []

    class Normal(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.layer = nn.BatchNorm1d(2), nn.Linear(2, 2)

        def forward(self, points):
            if self.training:
                seen.append(len(points))
            return self.layer(self.norm(points))

    own = make_own(optimizer="sgd", model=Normal, batch_sizes=[64, 128], engine={"pack_size": 1})
    program = own.make_trainer().program(own.spec.study(128), [POINT])
    seen.clear()
    program.advance(1)

    assert seen == [128]
    assert program.state()["buffer.norm.num_batches_tracked"] == 1


def test_a_frozen_part_in_bfloat16_is_trained_around_and_resumed(make_own):
    class Tuned(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.layer = nn.Linear(2, 8).bfloat16().requires_grad_(False), nn.Linear(8, 2)

        def forward(self, points):
            return self.layer(self.body(points.bfloat16()).relu().float())

    own = make_own(optimizer="sgd", model=Tuned, engine={"pack_size": 1})
    whole, half = program_of(own), program_of(own)
    whole.advance(6)
    half.advance(3)
    resumed = program_of(own, half.state())
    resumed.advance(6)

    assert equal(whole.state(), resumed.state())
    assert whole.weights(0)["body.weight"].dtype == np.float32


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, dtype=torch.cfloat))

    def forward(self, points):
        return (points * self.weight).real


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (Complex, "weight is complex64: keep it as real numbers"),
        (lambda: nn.LazyLinear(2), "weight has no shape yet: let model\\(\\) call the network once on an example"),
        (lambda: nn.LSTM(2, 2), "LSTM returned tuple, not a tensor: return one, or give a `training_step`"),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(make_own, model, sentence):
    with pytest.raises(TrainerError, match=sentence):
        program_of(make_own(optimizer="sgd", model=model, engine={"pack_size": 1})).advance(1)


def test_a_module_that_cannot_be_vectorised_in_evaluation_trains_one_by_one(make_own):
    class Checked(nn.Linear):
        def __init__(self):
            super().__init__(2, 2)

        def forward(self, points):
            if not self.training and bool((points > 100).any()):
                raise ValueError("far away")
            return super().forward(points)

    own = make_own(optimizer="sgd", model=Checked)

    assert own.make_trainer().pack_size(own.spec.study(16)) == 1
