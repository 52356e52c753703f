"""digits: 1,797 handwritten digits of 8x8 pixels that come with scikit-learn; no file, no network."""

from __future__ import annotations

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
    # It takes a second or two to import: only where digits are really read.
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
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
