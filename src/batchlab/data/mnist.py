"""mnist and fashion_mnist: 70,000 grey images of 28x28 pixels in 10 classes, as four idx files each."""

from __future__ import annotations

import numpy as np

from batchlab.data import idx
from batchlab.data.base import Dataset, DatasetFacts, Examples
from batchlab.data.files import DataFile, Reader
from batchlab.data.scaling import Scaling, scale_for

_NUM_CLASSES = 10
_TRAIN_EXAMPLES = 55_000
_FILE_NAMES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def _files(folders: tuple[str, ...], addresses: tuple[str, ...], *sums: tuple[int, str]) -> tuple[DataFile, ...]:
    """Return the four files, given the size and SHA-256 of each."""
    return tuple(
        DataFile(
            name=name,
            folders=folders,
            num_bytes=num_bytes,
            sha256=sha256,
            urls=tuple(address + name for address in addresses),
        )
        for name, (num_bytes, sha256) in zip(_FILE_NAMES, sums, strict=True)
    )


def _facts(name: str, source: str, files: tuple[DataFile, ...]) -> DatasetFacts:
    return DatasetFacts(
        name=name,
        train_examples=_TRAIN_EXAMPLES,
        val_examples=5_000,
        test_examples=10_000,
        input_shape=(1, 28, 28),
        num_classes=_NUM_CLASSES,
        metrics=("classification_error", "cross_entropy_error"),
        options=("train_examples", "scaling"),
        source=source,
        files=files,
    )


MNIST = _facts(
    "mnist",
    "LeCun, Cortes and Burges, The MNIST database of handwritten digits; licence CC BY-SA 3.0.",
    _files(
        ("mnist",),
        ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
        (9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        (28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        (1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        (4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    ),
)

FASHION_MNIST = _facts(
    "fashion_mnist",
    "Zalando Research, Fashion-MNIST; licence MIT.",
    _files(
        ("fashion-mnist", "fashion_mnist"),
        ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
        (26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        (29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        (4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        (5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    ),
)


def load(facts: DatasetFacts, read: Reader, scaling: Scaling = "unit") -> Dataset:
    """Return MNIST or Fashion-MNIST; `read` gives the content of a file.

    The published studies train on 55,000 and validate on 5,000 of the 60,000 official training images;
    which ones is not published. Here the last 5,000 in the official order validate.
    """
    train_images, train_labels, test_images, test_labels = facts.files
    images = _images(train_images, read)
    scale = scale_for(scaling, images[:_TRAIN_EXAMPLES])
    official = Examples(scale(images), _labels(train_labels, read))
    return Dataset(
        name=facts.name,
        train=official.at(slice(None, _TRAIN_EXAMPLES)),
        val=official.at(slice(_TRAIN_EXAMPLES, None)),
        test=Examples(scale(_images(test_images, read)), _labels(test_labels, read)),
        num_classes=_NUM_CLASSES,
    )


def _images(file: DataFile, read: Reader) -> np.ndarray:
    return idx.read_images(read(file), str(file))[:, np.newaxis]


def _labels(file: DataFile, read: Reader) -> np.ndarray:
    return idx.read_labels(read(file), str(file), _NUM_CLASSES)
