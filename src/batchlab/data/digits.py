"""digits: 1,797 handwritten digits of 8x8 pixels that come with scikit-learn; no file, no network."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from batchlab.core.seeds import Stream, generator
from batchlab.data.base import SPLIT_KEY, Dataset, DatasetFacts, Examples
from batchlab.data.scaling import Scaling, scale_for

DIGITS = DatasetFacts(
    name="digits",
    train_examples=1297,
    val_examples=250,
    test_examples=250,
    input_shape=(1, 8, 8),
    num_classes=10,
    metrics=("classification_error", "cross_entropy_error"),
    options=("train_examples", "scaling"),
    source="UCI Optical Recognition of Handwritten Digits (Alpaydin and Kaynak), test part, as in scikit-learn;"
    " licence CC BY 4.0.",
)

_LARGEST_PIXEL = 16


def load(scaling: Scaling = "unit") -> Dataset:
    """Return digits.

    The source has no official split and is ordered by writer, so it is shuffled once, the same way for
    every sweep: the first 1,297 examples train, the next 250 validate, the last 250 test.
    """
    images, labels = _read()
    order = generator(0, Stream.SUBSET, SPLIT_KEY).permutation(len(labels))
    images = images.reshape(-1, *DIGITS.input_shape)[order]
    scale = scale_for(scaling, images[:1297], _LARGEST_PIXEL)
    examples = Examples(scale(images), labels[order].astype(np.int64))
    return Dataset(
        name=DIGITS.name,
        train=examples.at(slice(0, 1297)),
        val=examples.at(slice(1297, 1547)),
        test=examples.at(slice(1547, 1797)),
        num_classes=10,
    )


def _read() -> tuple[np.ndarray, np.ndarray]:
    """Return images [1797, 64] and labels [1797], in the order of the source."""
    package = find_spec("sklearn")
    assert package is not None and package.submodule_search_locations
    path = Path(package.submodule_search_locations[0], "datasets", "data", "digits.csv.gz")
    if path.is_file():  # scikit-learn's own reader takes two seconds to import, this file a fiftieth of one to read
        rows = np.loadtxt(path, delimiter=",")
        return rows[:, :-1], rows[:, -1].astype(np.int64)
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return images, labels
