"""Sums over workers, counted and alone."""

from __future__ import annotations

import pickle

import numpy as np
import torch

from batchlab.engine.base import Point
from batchlab.engine.gang.exchange import Alone
from batchlab.engine.gang.exchange_timing import SUM_BYTES, ExchangingTrainer


class Other(Alone):
    """One of two workers; the other has the same."""

    size = 2

    def sum(self, tensor):
        return tensor.mul_(2)

    begin = sum


class Summing:
    """A trainer whose steps sum a gradient of 40 bytes and a loss of 4, and after some steps something else."""

    device_name = "cpu"

    def join(self, exchange):
        self.exchange = exchange

    def metrics(self, study):
        return ("val/loss",)

    def program(self, study, points, state=None):
        return Summed(self.exchange)


class Summed:
    def __init__(self, exchange):
        self.step, self.exchange, self.trial_ids = 0, exchange, np.zeros(1)

    def advance(self, target):
        while self.step < target:
            self.exchange.begin(torch.zeros(10))
            self.exchange.sum(torch.zeros(1))
            self.step += 1
        self.exchange.sum(torch.zeros(100))


def test_the_bytes_of_each_sum_of_a_step_are_known():
    trainer = ExchangingTrainer(Summing())
    trainer.join(Other())
    program = trainer.program(None, [Point(0, {"learning_rate": 0.1})])

    program.advance(4)
    program.advance(12)

    assert program.payloads == (40, 4)
    assert program.step == 12
    assert trainer.metrics(None) == ("val/loss",)


def test_steps_that_only_sum():
    trainer = ExchangingTrainer(Summing())
    trainer.join(Other())
    program = trainer.program(None, [Point(0, {SUM_BYTES: 4096.0})])

    program.advance(3)

    assert program.step == len(program.seconds) == 3
    assert all(seconds > 0 for seconds in program.seconds)
    assert trainer._exchange.payloads == [4096] * 3


def test_it_travels_and_answers_for_its_trainer():
    trainer = pickle.loads(pickle.dumps(ExchangingTrainer(Summing())))

    assert trainer.device_name == "cpu"
    assert not hasattr(trainer, "check_shared")
