from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from batchlab.data import files, mnist
from batchlab.data.base import Dataset, DatasetFacts

FACTS = {"mnist": mnist.MNIST, "fashion_mnist": mnist.FASHION_MNIST}

# Facts of the official 60,000 training images, from the notes beside the files.
MEAN_AND_DEVIATION = {"mnist": (0.13066, 0.30811), "fashion_mnist": (0.28604, 0.35302)}
CLASS_COUNTS = {
    "mnist": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    "fashion_mnist": [6000] * 10,
}


@pytest.fixture(scope="module", params=FACTS)
def facts(request: pytest.FixtureRequest) -> DatasetFacts:
    return FACTS[request.param]


@pytest.fixture(scope="module")
def loaded(facts: DatasetFacts, shared_data: Path) -> Dataset:
    return mnist.load(facts, lambda file: files.read(file, shared_data))


def test_splits_have_the_sizes_that_the_facts_promise(facts, loaded):
    assert loaded.name == facts.name
    assert (len(loaded.train), len(loaded.val), len(loaded.test)) == (55_000, 5_000, 10_000)
    assert (facts.train_examples, facts.val_examples, facts.test_examples) == (55_000, 5_000, 10_000)
    assert loaded.input_shape == facts.input_shape == (1, 28, 28)
    assert loaded.num_classes == facts.num_classes == 10


def test_train_and_val_are_the_official_training_set_in_its_order(facts, loaded, shared_data):
    official = labels_of(shared_data / facts.files[0].folders[0] / "train-labels-idx1-ubyte.gz")

    assert np.array_equal(loaded.train.labels, official[:55_000])
    assert np.array_equal(loaded.val.labels, official[55_000:])


def test_test_is_the_official_test_set(facts, loaded, shared_data):
    official = labels_of(shared_data / facts.files[0].folders[0] / "t10k-labels-idx1-ubyte.gz")

    assert np.array_equal(loaded.test.labels, official)


def labels_of(path: Path) -> np.ndarray:
    """The labels follow a header of 8 bytes."""
    return np.frombuffer(gzip.decompress(path.read_bytes())[8:], np.uint8)


def test_class_counts_are_the_published_ones(facts, loaded):
    counts = np.bincount(loaded.train.labels) + np.bincount(loaded.val.labels)

    assert counts.tolist() == CLASS_COUNTS[facts.name]


def test_mean_and_deviation_of_the_pixels_are_the_published_ones(facts, loaded):
    parts = (loaded.train.inputs, loaded.val.inputs)
    mean = sum(part.sum(dtype=np.float64) for part in parts) / (60_000 * 784)
    mean_square = sum(np.square(part).sum(dtype=np.float64) for part in parts) / (60_000 * 784)

    assert (mean, np.sqrt(mean_square - mean**2)) == pytest.approx(MEAN_AND_DEVIATION[facts.name], abs=5e-6)


def test_pixels_are_from_0_to_1(loaded):
    assert (loaded.test.inputs.min(), loaded.test.inputs.max()) == (0, 1)


def test_names_sizes_and_checksums_are_those_of_the_published_files(facts, shared_data):
    sums = dict(reversed(line.split()) for line in (shared_data / "SHA256SUMS").read_text().splitlines())

    for file in facts.files:
        assert file.sha256 == sums[str(file)]
        assert file.num_bytes == (shared_data / str(file)).stat().st_size


def test_every_file_has_an_official_address():
    assert {url.rpartition("/")[0] for file in mnist.MNIST.files for url in file.urls} == {
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    }
    assert {url.rpartition("/")[0] for file in mnist.FASHION_MNIST.files for url in file.urls} == {
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
    }
    assert all(url.endswith(f"/{file.name}") for known in FACTS.values() for file in known.files for url in file.urls)
