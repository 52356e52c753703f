"""cifar_10: 60,000 colour images of 32x32 pixels in 10 classes, from the python or the binary release."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from batchlab.data import files
from batchlab.data.base import Dataset, DatasetFacts, Examples
from batchlab.data.files import DataFile, DataState, Source
from batchlab.data.restricted_pickle import StoredArray, read_pickle
from batchlab.data.scaling import Scale, Scaling, scale_for
from batchlab.data.tar_gz import read_members
from batchlab.errors import DataError
from batchlab.files import read_bounded

_IMAGE_SHAPE = (3, 32, 32)
_NUM_CLASSES = 10
_TRAIN_EXAMPLES = 45_000
_MOST_BATCH_BYTES = 40_000_000  # a published one has 31 million
_FOLDERS = ("cifar-10", "cifar_10")
_NAMES = ("cifar-10-batches-py", "cifar-10-python.tar.gz", "cifar-10-batches-bin", "cifar-10-binary.tar.gz")

# Those of the python release are published; those of the binary one follow from them: the same labels and pixels.
_PYTHON_MD5 = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
}
_BINARY_MD5 = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}

_PYTHON_TAR = DataFile(
    name="cifar-10-python.tar.gz",
    folders=_FOLDERS,
    num_bytes=170_498_071,
    sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    urls=("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
)

CIFAR_10 = DatasetFacts(
    name="cifar_10",
    train_examples=_TRAIN_EXAMPLES,
    val_examples=5_000,
    test_examples=10_000,
    input_shape=_IMAGE_SHAPE,
    num_classes=_NUM_CLASSES,
    metrics=("classification_error", "cross_entropy_error"),
    options=("train_examples", "scaling"),
    source="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009; no licence is stated.",
    files=(_PYTHON_TAR,),
    place="cifar-10-batches-py/ or cifar-10-batches-bin/, or the tar.gz of either,",
)


def state(data_dir: Path | None) -> DataState:
    """Return whether a release is there; else the python one can be fetched."""
    return "fetchable" if files.find_any(_NAMES, _FOLDERS, data_dir) is None else "present"


def load(source: Source, scaling: Scaling = "per_image") -> Dataset:
    """Return CIFAR-10, unless told otherwise with every image standardised by itself.

    The published studies validate on 5,000 of the 50,000 official training images; which ones is not published.
    Here the last 5,000 in the official order validate.
    """
    path = source.find_any(_NAMES, _FOLDERS)
    if path is None:
        source.read(_PYTHON_TAR)
        path = source.find_any(_NAMES, _FOLDERS)
        assert path is not None
    is_binary = "bin" in path.name
    *train, test = _read_batches(path, _BINARY_MD5 if is_binary else _PYTHON_MD5)
    parse = _parse_binary if is_binary else _parse_python
    joined = _joined([parse(content, name) for content, name in train])
    scale = scale_for(scaling, joined[0][:_TRAIN_EXAMPLES])
    official = _examples(scale, joined)
    return Dataset(
        name=CIFAR_10.name,
        train=official.at(slice(None, _TRAIN_EXAMPLES)),
        val=official.at(slice(_TRAIN_EXAMPLES, None)),
        test=_examples(scale, parse(*test)),
        num_classes=_NUM_CLASSES,
    )


Batch = tuple[np.ndarray, np.ndarray]
"""Images [num_examples, 3, 32, 32] and labels [num_examples], bytes both."""


def _joined(batches: Sequence[Batch]) -> Batch:
    return np.concatenate([images for images, _ in batches]), np.concatenate([labels for _, labels in batches])


def _examples(scale: Scale, batch: Batch) -> Examples:
    images, labels = batch
    return Examples(scale(images), labels.astype(np.int64))


def _parse_python(content: bytes, source: str) -> Batch:
    fields = read_pickle(content, source)
    data = fields.get(b"data") if isinstance(fields, dict) else None
    if not isinstance(data, StoredArray) or not isinstance(fields.get(b"labels"), list):
        raise DataError(f"{source}: it has no `data` and `labels`. Replace it with the published one.")
    return _checked(data.values, np.asarray(fields[b"labels"]), source)


def _parse_binary(content: bytes, source: str) -> Batch:
    record_bytes = 1 + int(np.prod(_IMAGE_SHAPE))
    if len(content) % record_bytes:
        raise DataError(f"{source}: {len(content):,} bytes are no whole number of records of {record_bytes}.")
    records = np.frombuffer(content, np.uint8).reshape(-1, record_bytes)
    return _checked(records[:, 1:], records[:, 0], source)


def _checked(data: np.ndarray, labels: np.ndarray, source: str) -> Batch:
    if data.dtype != np.uint8 or data.shape != (len(labels), np.prod(_IMAGE_SHAPE)):
        raise DataError(f"{source}: {len(labels)} labels come with {data.dtype} {list(data.shape)} pixels.")
    wrong = np.flatnonzero((labels < 0) | (labels >= _NUM_CLASSES))
    if len(wrong):
        raise DataError(f"{source}: label {labels[wrong[0]]} of example {wrong[0]} is not in 0 to {_NUM_CLASSES - 1}.")
    return data.reshape(-1, *_IMAGE_SHAPE), labels


def _read_batches(path: Path, md5: dict[str, str]) -> list[tuple[bytes, str]]:
    """Return the proven content of each batch and what to call it in errors."""
    read = _read_folder(path, list(md5)) if path.is_dir() else read_members(path, md5, _MOST_BATCH_BYTES)
    for name, known in md5.items():
        if name not in read:
            raise DataError(f"{path}: {name} is missing. Restore it from the published release.")
        found = hashlib.md5(read[name], usedforsecurity=False).hexdigest()
        if found != known:
            raise DataError(
                f"{path / name} is not the published one: MD5 {found} of {len(read[name]):,} bytes, expected {known}."
                " Replace it with the original."
            )
    return [(read[name], str(path / name)) for name in md5]


def _read_folder(path: Path, names: list[str]) -> dict[str, bytes]:
    found = [path / name for name in names if os.path.lexists(path / name)]
    return {place.name: read_bounded(place, _MOST_BATCH_BYTES, DataError) for place in found}
