"""The order of examples: an endless stream of permutations, cut into batches."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.engine.order import ExampleOrder


@pytest.mark.parametrize("num_examples", [1, 2, 10, 1297])
def test_every_epoch_is_a_permutation(num_examples):
    order = ExampleOrder(num_examples, seed=0, trial_id=3)

    for epoch in range(4):
        epoch_order = order.take(epoch * num_examples, num_examples)

        assert sorted(epoch_order) == list(range(num_examples))


def test_epochs_differ():
    stream = ExampleOrder(50, seed=0, trial_id=0).take(0, 500).reshape(10, 50)

    assert len({tuple(epoch) for epoch in stream.tolist()}) == 10


@pytest.mark.parametrize("batch_size", [1, 3, 7, 10, 16, 25, 100])
def test_the_stream_does_not_depend_on_the_batch_size(batch_size):
    """Ten examples: batches that divide an epoch, span two of them, and are longer than one."""
    expected = ExampleOrder(10, seed=0, trial_id=0).take(0, 100)
    order = ExampleOrder(10, seed=0, trial_id=0)

    batches = [order.take(start, min(batch_size, 100 - start)) for start in range(0, 100, batch_size)]

    assert np.array_equal(np.concatenate(batches), expected)


def test_any_position_can_be_read_without_those_before_it():
    expected = ExampleOrder(10, seed=0, trial_id=0).take(0, 200)
    order = ExampleOrder(10, seed=0, trial_id=0)

    for start, count in [(150, 20), (0, 3), (95, 10), (9, 1), (10, 1), (150, 20)]:
        assert np.array_equal(order.take(start, count), expected[start : start + count])


def test_trials_and_seeds_have_orders_of_their_own():
    streams = [ExampleOrder(100, seed, trial_id).take(0, 100) for seed, trial_id in [(0, 0), (0, 1), (1, 0), (1, 1)]]

    assert len({tuple(stream.tolist()) for stream in streams}) == 4


def test_every_example_is_as_likely_to_come_first():
    """The first example of 4,000 epochs of five: 800 each, standard deviation 25."""
    firsts = ExampleOrder(5, seed=0, trial_id=0).take(0, 20_000)[::5]

    assert np.abs(np.bincount(firsts) - 800).max() < 100
