"""The first of several workers leads, the others follow: in this process, by a list of orders."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from batchlab.engine.base import Point
from batchlab.engine.gang.leading import Advance, Forget, LeadingTrainer, Make, follow
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.errors import TrainerError

POINTS = [Point(0, {"learning_rate": 0.1})]


@pytest.fixture
def study(make_nqm):
    return make_nqm().study(16)


class Remembering(QuadraticTrainer):
    """Keeps the programs that it makes."""

    def __init__(self):
        object.__setattr__(self, "programs", [])  # it is frozen

    def program(self, study, points, state=None):
        self.programs.append(super().program(study, points, state))
        return self.programs[-1]


def test_what_the_first_trains_the_others_train(study):
    orders, followed = [], Remembering()
    leader = LeadingTrainer(QuadraticTrainer(), orders.append)
    program = leader.program(study, POINTS)
    program.advance(7)
    again = leader.program(study, POINTS, program.state())
    again.advance(9)

    follow(followed, orders, announce=pytest.fail)

    assert [program.step, again.step] == [7, 9]
    assert [each.step for each in followed.programs] == [7, 9]
    assert all(np.array_equal(each, followed.programs[1].state()[name]) for name, each in again.state().items())
    assert leader.is_in_step


def test_what_is_not_trained_is_not_told(study):
    orders = []
    program = LeadingTrainer(QuadraticTrainer(), orders.append).program(study, POINTS)
    program.evaluate()
    program.state()

    assert [type(order) for order in orders] == [Make]
    assert program.trial_ids.tolist() == [0]
    assert not hasattr(program, "is_spent") or not program.is_spent


def test_a_program_that_is_gone_is_forgotten(study):
    orders, leader = [], None
    leader = LeadingTrainer(QuadraticTrainer(), orders.append)
    program = leader.program(study, POINTS)
    del program
    gc.collect()
    leader.program(study, POINTS)

    assert [type(order) for order in orders] == [Make, Forget, Make]
    follow(QuadraticTrainer(), orders, announce=pytest.fail)


class Failing(QuadraticTrainer):
    def program(self, study, points, state=None):
        raise TrainerError("no program")


def test_a_program_that_only_another_cannot_make_is_raised_where_it_is_trained(study):
    orders, announced = [], []
    leader = LeadingTrainer(QuadraticTrainer(), orders.append)
    program = leader.program(study, POINTS)
    follow(Failing(), orders, announced.append)
    assert [str(error) for error in announced] == ["no program"]

    program.advance(3)

    assert isinstance(orders[-1], Advance)
    with pytest.raises(TrainerError, match="no program"):
        follow(Failing(), orders, announced.append)


def test_a_first_worker_that_fails_at_what_all_do_is_out_of_step(study):
    told = []
    leader = LeadingTrainer(Failing(), lambda order: None, told.append)

    with pytest.raises(TrainerError, match="no program"):
        leader.program(study, POINTS)

    assert not leader.is_in_step
    assert told == [True, False]
