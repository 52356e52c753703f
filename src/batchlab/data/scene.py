"""scene: 2,407 photographs of landscapes and towns with 6 labels, any number of which may hold at once."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from batchlab.core.seeds import Stream, generator
from batchlab.data import files
from batchlab.data.base import SPLIT_KEY, Dataset, DatasetFacts, Examples
from batchlab.data.files import DataState, Source
from batchlab.errors import DataError, shown
from batchlab.files import read_bounded

_INPUT_SHAPE = (6, 7, 7)
_NUM_FEATURES = 294
_NUM_CLASSES = 6
_TRAIN_EXAMPLES = 1_011
_FOLDERS = ("scene",)
_MOST_BYTES = 1 << 25  # a published one has 3.4 million
_TRAIN_FILE, _TEST_FILE = "scene-train.arff", "scene-test.arff"

# Of the numbers, as float64 with the lowest byte first: headers and comments may differ.
_SHA256 = {
    _TRAIN_FILE: "ba5eff1bc1c4f228e759b10d0d3a78e7978adce0d509794af4f6d5544a62ff99",
    _TEST_FILE: "555d8dbcb99fd787c9efa239a41f5a3e02d8729d5068ac5dae203948b471f409",
}
_LABEL_COUNTS = {
    _TRAIN_FILE: (1_211, [227, 165, 197, 196, 277, 224]),
    _TEST_FILE: (1_196, [200, 199, 200, 237, 256, 207]),
}

SCENE = DatasetFacts(
    name="scene",
    train_examples=_TRAIN_EXAMPLES,
    val_examples=200,
    test_examples=1_196,
    input_shape=_INPUT_SHAPE,
    num_classes=_NUM_CLASSES,
    task="multi_label",
    metrics=("cross_entropy_error", "average_precision"),
    source="Boutell, Luo, Shen and Brown, Learning multi-label scene classification, 2004, as split by Mulan;"
    " no licence is stated, research use.",
    place="scene-train.arff and scene-test.arff",
)


def state(data_dir: Path | None) -> DataState:
    """Return whether both files are there."""
    states = {files.state_of_any((name,), _FOLDERS, data_dir) for name in _SHA256}
    return "missing" if "missing" in states else "present"


def load(source: Source) -> Dataset:
    """Return scene as 6 maps of 7x7 pixels, each map standardised by its mean and deviation over the training part.

    A row of the file holds 294 features of a 7x7 grid: mean and variance of 3 Luv channels. That they come as 6
    runs of 49, mean and variance of L, u and v in turn, each row by row, is not documented; it is how neighbouring
    features correlate. The training file is ordered by label, so it is shuffled once: 1,011 train, 200 validate.
    """
    official, test = (_read(source, name) for name in (_TRAIN_FILE, _TEST_FILE))
    order = generator(0, Stream.SUBSET, SPLIT_KEY).permutation(len(official))
    train, val = official[order[:_TRAIN_EXAMPLES]], official[order[_TRAIN_EXAMPLES:]]
    maps = _maps(train)
    mean, std = maps.mean(axis=(0, 2, 3), keepdims=True), maps.std(axis=(0, 2, 3), keepdims=True)

    def examples(rows: np.ndarray) -> Examples:
        return Examples(((_maps(rows) - mean) / std).astype(np.float32), rows[:, _NUM_FEATURES:].astype(np.uint8))

    return Dataset(
        name=SCENE.name,
        train=examples(train),
        val=examples(val),
        test=examples(test),
        num_classes=_NUM_CLASSES,
        task="multi_label",
    )


def read_arff(content: bytes, source: str, num_columns: int) -> np.ndarray:
    """Return the rows of a numeric ARFF file, float64; the header and comments may be there or not.

    >>> read_arff(b"@relation r\\n@data\\n0.5,1\\n\\n0.25,0\\n", "r.arff", num_columns=2)
    array([[0.5 , 1.  ],
           [0.25, 0.  ]])
    """
    lines = [
        (number, line)
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith(("@", "%"))
    ]
    rows = []
    for number, line in lines:
        try:
            rows.append([float(value) for value in line.split(",")])
        except ValueError as error:
            raise DataError(
                f"{source}, line {number}: {shown(str(error))}. Replace the file with the original."
            ) from error
        if len(rows[-1]) != num_columns:
            raise DataError(f"{source}, line {number}: {len(rows[-1])} numbers, {num_columns} are expected.")
    return np.array(rows).reshape(-1, num_columns)


def _maps(rows: np.ndarray) -> np.ndarray:
    return rows[:, :_NUM_FEATURES].reshape(-1, *_INPUT_SHAPE)


def _read(source: Source, name: str) -> np.ndarray:
    path = source.find_any((name,), _FOLDERS)
    if path is None:
        raise files.missing(SCENE.name, SCENE.place)
    content = read_bounded(path, _MOST_BYTES, DataError)
    rows = read_arff(content, str(path), _NUM_FEATURES + _NUM_CLASSES)
    _check_labels(rows[:, _NUM_FEATURES:], path, *_LABEL_COUNTS[name])
    sha256 = hashlib.sha256(rows.astype("<f8").tobytes()).hexdigest()
    if sha256 != _SHA256[name]:
        raise DataError(
            f"{path} has other numbers than the published {name}: SHA-256 {sha256}, expected {_SHA256[name]}. Replace "
            "it with the original."
        )
    return rows


def _check_labels(labels: np.ndarray, path: Path, num_rows: int, counts: list[int]) -> None:
    wrong = np.argwhere((labels != 0) & (labels != 1))
    if len(wrong):
        raise DataError(f"{path}: label {labels[tuple(wrong[0])]:g} of example {wrong[0][0]} is neither 0 nor 1.")
    found = labels.sum(axis=0).astype(int).tolist()
    if (len(labels), found) != (num_rows, counts):
        raise DataError(
            f"{path}: {len(labels)} rows with label counts {found}, the published file has {num_rows} with {counts}."
            " Replace it with the original."
        )
