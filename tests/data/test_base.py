from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from batchlab.data.base import Dataset, Examples


def examples(count: int, shape: tuple[int, ...] = (2,)) -> Examples:
    """Examples whose inputs hold their own number, with labels 0, 1, 2, 0, ..."""
    numbers = np.arange(count, dtype=np.float32).reshape(count, *(1 for _ in shape))
    return Examples(np.broadcast_to(numbers, (count, *shape)).copy(), np.arange(count) % 3)


def dataset(train_examples: int = 10) -> Dataset:
    return Dataset("tiny", train=examples(train_examples), val=examples(4), test=examples(5), num_classes=3)


def numbers(drawn: Dataset) -> list[int]:
    return drawn.train.inputs[:, 0].astype(int).tolist()


def test_examples_know_their_count_and_shape():
    made = examples(6, (1, 4, 4))

    assert (len(made), made.input_shape) == (6, (1, 4, 4))


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (np.zeros((2, 3)), np.zeros(2, np.int64), "inputs are float64"),
        (np.zeros(2, np.float32), np.zeros(2, np.int64), r"inputs are float32 \[2\]"),
        (np.zeros((2, 3), np.float32), np.zeros(2, np.int32), "labels are int32"),
        (np.zeros((2, 3), np.float32), np.zeros((2, 1), np.int64), r"labels are int64 \[2, 1\]"),
        (np.zeros((2, 3), np.float32), np.zeros(3, np.int64), "2 inputs have 3 labels"),
        (np.zeros((0, 3), np.float32), np.zeros(0, np.int64), "no examples"),
    ],
)
def test_examples_refuse_arrays_of_another_kind(inputs, labels, message):
    with pytest.raises(ValueError, match=message):
        Examples(inputs, labels)


def test_a_slice_of_examples_shares_their_memory():
    made = examples(6)

    assert np.shares_memory(made.at(slice(2, 4)).inputs, made.inputs)


def test_sentences_stay_their_own_labels_in_a_subset():
    tokens = np.arange(12, dtype=np.int32).reshape(4, 3)

    some = Examples(tokens, tokens).at(np.array([0, 2]))

    assert some.labels is some.inputs


def test_a_dataset_refuses_splits_of_different_shapes():
    with pytest.raises(ValueError, match=r"tiny: test inputs are \(3,\), not \(2,\)"):
        Dataset("tiny", train=examples(4), val=examples(4), test=examples(4, (3,)), num_classes=3)


@pytest.mark.parametrize(("labels", "message"), [([0, 2], "0 to 2, not 0 to 1"), ([-1, 1], "-1 to 1, not 0 to 1")])
def test_a_dataset_refuses_labels_outside_its_classes(labels, message):
    good = Examples(np.zeros((2, 2), np.float32), np.array([0, 1]))
    bad = Examples(np.zeros((2, 2), np.float32), np.array(labels))

    with pytest.raises(ValueError, match=f"val labels are {message}"):
        Dataset("tiny", train=good, val=bad, test=good, num_classes=2)


def test_take_draws_the_same_examples_every_time():
    """The pinned choice is part of every stored result on a subset: it must never change."""
    assert numbers(dataset().take(4)) == numbers(dataset().take(4)) == [6, 7, 8, 9]


def test_take_keeps_inputs_with_their_labels_and_leaves_val_and_test():
    full = dataset()
    drawn = full.take(7)

    assert drawn.train.labels.tolist() == [number % 3 for number in numbers(drawn)]
    assert (drawn.val, drawn.test) == (full.val, full.test)


def test_smaller_subsets_are_part_of_larger_ones():
    drawn = [set(numbers(dataset(50).take(count))) for count in range(1, 51)]

    assert [len(subset) for subset in drawn] == list(range(1, 51))
    assert all(small < large for small, large in pairwise(drawn))


def test_another_seed_draws_another_subset():
    assert numbers(dataset(50).take(10, seed=0)) != numbers(dataset(50).take(10, seed=1))


def test_subsets_are_drawn_uniformly():
    """Each of 10 examples is in 3 of 10 draws: 400 seeds give 120, standard deviation 9.2; five of them are allowed."""
    counts = np.zeros(10)
    for seed in range(400):
        counts[numbers(dataset().take(3, seed))] += 1

    assert np.all(np.abs(counts - 120) < 46)


def test_taking_everything_changes_nothing():
    assert numbers(dataset().take(10)) == list(range(10))


@pytest.mark.parametrize("count", [0, 11])
def test_take_refuses_a_size_that_is_not_there(count):
    with pytest.raises(ValueError, match=f"train_examples = {count} is not in 1 to 10"):
        dataset().take(count)
