from __future__ import annotations

import shutil

import numpy as np
import pytest

from batchlab.core.workload import Named
from batchlab.data import registry, scene
from batchlab.data.files import Source
from batchlab.errors import DataError

HEADER = b"% Mulan\n@relation scene\n@attribute Att1 numeric\n@attribute Beach {0,1}\n\n@data\n"


@pytest.fixture
def copied(shared_data, tmp_path):
    shutil.copytree(shared_data / "scene", tmp_path / "scene", copy_function=shutil.copyfile)
    return tmp_path


def rows_of(path) -> np.ndarray:
    return np.loadtxt(path, delimiter=",")


def test_the_splits_and_labels_are_those_of_the_files(shared_data):
    """Label counts of all 2,407 rows as published: 427 364 397 433 533 431."""
    dataset = scene.load(Source(shared_data))

    assert dataset.task == "multi_label" and dataset.num_classes == 6
    assert [len(dataset.train), len(dataset.val), len(dataset.test)] == [1_011, 200, 1_196]
    labels = np.concatenate([dataset.train.labels, dataset.val.labels, dataset.test.labels])
    assert labels.dtype == np.uint8
    assert labels.sum(axis=0).tolist() == [427, 364, 397, 433, 533, 431]
    assert np.all(dataset.val.labels.sum(axis=0) > 10)


def test_each_map_is_49_features_in_a_row_standardised_by_the_training_part(shared_data):
    dataset = scene.load(Source(shared_data))
    rows = rows_of(shared_data / "scene" / "scene-test.arff")

    assert dataset.input_shape == (6, 7, 7)
    assert np.allclose(dataset.train.inputs.mean(axis=(0, 2, 3)), 0, atol=1e-5)
    assert np.allclose(dataset.train.inputs.std(axis=(0, 2, 3)), 1, atol=1e-5)
    for number in range(6):
        stored, maps = rows[:, 49 * number : 49 * (number + 1)], dataset.test.inputs[:, number].reshape(-1, 49)
        slope, intercept = np.polyfit(stored[0], maps[0], 1)
        assert np.allclose(slope * stored + intercept, maps, atol=1e-3)
    assert np.array_equal(dataset.test.labels, rows[:, 294:])


def test_a_file_with_its_arff_header_gives_the_same_arrays(shared_data, copied):
    for name in ("scene-train.arff", "scene-test.arff"):
        path = copied / "scene" / name
        path.write_bytes(HEADER + path.read_bytes())

    plain, headed = scene.load(Source(shared_data)), scene.load(Source(copied))

    assert np.array_equal(plain.train.inputs, headed.train.inputs)
    assert np.array_equal(plain.test.labels, headed.test.labels)


@pytest.mark.parametrize("header", [b"", HEADER])
@pytest.mark.parametrize("changed", [lambda value: b"nan", lambda value: value + b"1", lambda value: b"1e300"])
def test_another_number_is_refused_with_a_header_and_without(copied, header, changed):
    path = copied / "scene" / "scene-test.arff"
    first, rest = path.read_bytes().split(b",", 1)
    path.write_bytes(header + changed(first) + b"," + rest)

    with pytest.raises(DataError, match=r"scene-test\.arff has other numbers than the published .*: SHA-256"):
        scene.load(Source(copied))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], r"scene-train\.arff: 1210 rows with label counts"),
        (lambda lines: [*lines[:-1], lines[-1][:-1] + b"2"], r"label 2 of example 1210 is neither 0 nor 1"),
        (lambda lines: [b"0.5", *lines[1:]], r"scene-train\.arff, line 7: 1 numbers, 300 are expected"),
        (lambda lines: [b"x" + lines[0], *lines[1:]], r"scene-train\.arff, line 7: could not convert string"),
    ],
)
def test_with_a_header_rows_and_labels_prove_the_file(copied, change, message):
    path = copied / "scene" / "scene-train.arff"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(HEADER + b"\n".join(change([line for line in lines if line.strip()])) + b"\n")

    with pytest.raises(DataError, match=message):
        scene.load(Source(copied))


def test_a_missing_file_says_what_to_put_where(copied):
    assert registry.data_state(Named(name="scene"), copied) == "present"
    (copied / "scene" / "scene-test.arff").unlink()

    assert registry.data_state(Named(name="scene"), copied) == "missing"
    with pytest.raises(DataError, match=r"put scene-train\.arff and scene-test\.arff into a folder .* --data DIR"):
        registry.load(Named(name="scene"), copied)
