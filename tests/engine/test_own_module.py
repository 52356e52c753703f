"""A module of the user's own: its own start, buffers, modes and random numbers, repeated and resumed to the bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from batchlab.engine.base import Point
from batchlab.engine.objectives import OBJECTIVES
from batchlab.engine.problem import Problem, Split
from batchlab.engine.program import TorchProgram

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

    def make(seed=0, point=POINT):
        study = make_digits_study(batch_size=32, seed=seed)
        objective, cpu = OBJECTIVES["classification"], torch.device("cpu")
        problem = Problem(Own, objective, 10, split(dataset.train), {"val": split(dataset.val)}, cpu)
        return TorchProgram(problem, study, [point])

    return make


def trained(program, target=LAST):
    while program.step < target:
        program.advance(target)
    return program.state()


def equal(first, second):
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def test_it_starts_as_its_class_says(make_program):
    state = make_program().state()

    scale = 64 * 20 + 20  # where the scale of the norm lies in the row
    assert state["parameters"][0, scale : scale + 20].tolist() == [1.0] * 20
    assert state["buffer.norm.running_var"].tolist() == [[1.0] * 20]


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


@pytest.mark.parametrize("stop", [1, 5, 11])
def test_it_goes_on_from_any_step_with_equal_bits(make_program, stop):
    whole = trained(make_program())
    stopped = trained(make_program(), stop)

    resumed = make_program()
    resumed.restore(stopped)

    assert equal(trained(resumed), whole)


def test_its_dropout_differs_from_step_to_step(make_program):
    program, masks = make_program(), []
    program._forward.network.dropout.register_forward_hook(
        lambda module, inputs, output: masks.append(output == 0) if module.training else None
    )

    trained(program, 3)

    assert not torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[1], masks[2])


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
