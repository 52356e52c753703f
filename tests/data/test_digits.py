from __future__ import annotations

import gzip
import hashlib

import numpy as np
import pytest

from batchlab.data import digits
from batchlab.data.base import Dataset


@pytest.fixture(scope="module")
def loaded() -> Dataset:
    return digits.load()


def joined(loaded: Dataset) -> tuple[np.ndarray, np.ndarray]:
    splits = (loaded.train, loaded.val, loaded.test)
    return np.concatenate([s.inputs for s in splits]), np.concatenate([s.labels for s in splits])


def test_splits_have_the_sizes_that_the_facts_promise(loaded):
    facts = digits.DIGITS

    assert (len(loaded.train), len(loaded.val), len(loaded.test)) == (1297, 250, 250)
    assert (facts.train_examples, facts.val_examples, facts.test_examples) == (1297, 250, 250)
    assert loaded.input_shape == facts.input_shape == (1, 8, 8)
    assert loaded.num_classes == facts.num_classes == 10


def test_the_file_is_read_as_scikit_learn_reads_it(monkeypatch):
    read = digits._read()
    monkeypatch.setattr("pathlib.Path.is_file", lambda path: False)
    theirs = digits._read()

    for ours, expected in zip(read, theirs, strict=True):
        assert ours.dtype == expected.dtype
        assert np.array_equal(ours, expected)


def test_the_split_never_changes(loaded):
    """Every stored result on digits depends on this order."""
    _, labels = joined(loaded)

    assert labels[:10].tolist() == [8, 1, 0, 3, 4, 6, 4, 1, 1, 6]
    assert (
        hashlib.sha256(labels.astype("<i8").tobytes()).hexdigest()
        == "7b326824c332ae0201a2bab2d2bed8516f98ed3e856f6dd5425d489a07066bce"
    )


def test_pixels_are_sixteenths_from_0_to_1(loaded):
    inputs, _ = joined(loaded)

    assert (inputs.min(), inputs.max()) == (0, 1)
    assert np.all(inputs * 16 == np.round(inputs * 16))


def test_the_splits_hold_every_published_example_once(loaded, shared_data):
    """Against the published table: 64 pixels of 0 to 16 and the label in each row."""
    table = np.loadtxt(
        gzip.decompress((shared_data / "digits" / "digits.csv.gz").read_bytes()).decode().splitlines(), delimiter=","
    )
    inputs, labels = joined(loaded)
    rows = np.column_stack([inputs.reshape(-1, 64) * 16, labels])

    assert sorted(map(tuple, rows)) == sorted(map(tuple, table))
