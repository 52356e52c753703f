"""open_images_v4: photographs with any number of 7,186 labels, from the official label files and images."""

from __future__ import annotations

import csv
import hashlib
import os
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from batchlab.data import files
from batchlab.data.base import Dataset, DatasetFacts, Examples, train_subset
from batchlab.data.cache_key import kept_path
from batchlab.data.files import DataState, Source
from batchlab.data.image_cache import colour_view, load_images, stored_side
from batchlab.data.kept import is_kept, set_seal
from batchlab.data.map_file import open_map, whole_map
from batchlab.data.stored_file import StoredFile, stored_file
from batchlab.errors import DataError

_FOLDERS = ("open-images-v4", "open_images_v4", "open-images")
_CLASSES = "classes-trainable.txt"
_SPLITS = {"train": "train", "val": "validation", "test": "test"}
_COLUMNS = ["ImageID", "Source", "LabelName", "Confidence"]
_SUFFIX = ".jpg"
_BLOCK_IMAGES = 4096  # whose labels are in memory at one time

OPEN_IMAGES_V4 = DatasetFacts(
    name="open_images_v4",
    train_examples=4_526_492,
    val_examples=41_225,
    test_examples=124_293,
    input_shape=(3, 224, 224),
    num_classes=7_186,
    task="multi_label",
    metrics=("cross_entropy_error", "average_precision"),
    options=("train_examples", "image_size"),
    source="Krasin et al., Open Images V4; licences: annotations CC BY 4.0, images CC BY 2.0.",
    place=f"{_CLASSES}, {{train,validation,test}}-annotations-human-imagelabels.csv and the folders train/, validation/"
    " and test/ with <ImageID>.jpg",
)


def state(data_dir: Path | None) -> DataState:
    """Return whether the list of classes is there."""
    return files.state_of_any((_CLASSES,), _FOLDERS, data_dir)


def load(options: Mapping[str, Any], source: Source) -> Dataset:
    """Return Open Images: bytes, somewhat larger than `image_size` (224), how they are viewed, and several labels.

    A label holds where people said so (Confidence 1) and its class is trainable; everything else counts as not.
    Images without such a label, or without a file, are left out. The splits are the official ones, ordered by ImageID.
    """
    path = source.find_any((_CLASSES,), _FOLDERS)
    if path is None:
        raise files.missing(OPEN_IMAGES_V4.name, OPEN_IMAGES_V4.place)
    classes = {name: number for number, name in enumerate(_read_classes(path))}
    image_size = options.get("image_size", OPEN_IMAGES_V4.input_shape[-1])
    examples = {
        split: _examples(path.parent, split, classes, image_size, options.get("train_examples")) for split in _SPLITS
    }
    return Dataset(
        name=OPEN_IMAGES_V4.name,
        **examples,
        num_classes=len(classes),
        task="multi_label",
        view=colour_view(image_size),
    )


def read_positives(path: Path, images: Mapping[str, int], classes: Mapping[str, int]) -> np.ndarray:
    """Return the labels that hold, [num_labels, 2]: the numbers of image and class; what has no number is skipped.

    The file is read line by line: it may be far larger than memory.
    """
    pairs = array("q")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.reader(file)
            if next(rows, None) != _COLUMNS:
                raise DataError(
                    f"{path}: its first line is not {','.join(_COLUMNS)}. Replace it with the published one."
                )
            for row in rows:
                if len(row) != len(_COLUMNS) or row[3] not in ("0", "1", "0.0", "1.0"):
                    raise DataError(
                        f"{path}, line {rows.line_num}: {','.join(row)!r} is not an image, a source, a label and a"
                        " confidence of 0 or 1. Replace the file with the published one."
                    )
                if row[3][0] == "1" and row[0] in images and row[2] in classes:
                    pairs.extend((images[row[0]], classes[row[2]]))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {error}. Restore it from the published set.") from error
    return np.array(pairs, np.int64).reshape(-1, 2)


def _examples(
    root: Path, split: str, classes: Mapping[str, int], image_size: int, train_examples: int | None
) -> Examples:
    official = _SPLITS[split]
    sources = _list_images(root / official)
    table = root / f"{official}-annotations-human-imagelabels.csv"
    positives = read_positives(table, {_image_id(source): row for row, source in enumerate(sources)}, classes)
    kept = np.unique(positives[:, 0])
    if len(kept) == 0:
        raise DataError(f"{table}: no image in {root / official} has a label that holds.")
    if split == "train" and train_examples is not None and train_examples < len(kept):
        kept = kept[train_subset(len(kept), train_examples)]
    positives = positives[np.isin(positives[:, 0], kept)]
    positives = positives[np.argsort(positives[:, 0], kind="stable")]
    labels = np.stack([np.searchsorted(kept, positives[:, 0]), positives[:, 1]], axis=1)
    sources = [sources[row] for row in kept]
    name = f"{OPEN_IMAGES_V4.name}-{split}"
    return Examples(
        load_images(name, sources, stored_side(image_size)), _label_map(name, labels, len(kept), len(classes))
    )


def _label_map(name: str, labels: np.ndarray, num_images: int, num_classes: int) -> np.ndarray:
    """Return the labels as a memory map, [num_images, num_classes] uint8: the full set's would not fit in memory.

    `labels` are pairs of image and class, ascending by image.
    """
    digest = hashlib.sha256(labels.tobytes()).hexdigest()
    path = kept_path("images", f"{name}-labels", ".npy", [], images=num_images, classes=num_classes, labels=digest)
    if not is_kept(path):
        with whole_map(path, (num_images, num_classes)) as (temporary, offset), temporary.open("r+b") as file:
            file.seek(offset)
            for start in range(0, num_images, _BLOCK_IMAGES):
                low, high = np.searchsorted(labels[:, 0], [start, start + _BLOCK_IMAGES])
                block = np.zeros((min(_BLOCK_IMAGES, num_images - start), num_classes), np.uint8)
                block[labels[low:high, 0] - start, labels[low:high, 1]] = 1
                file.write(block.data)
        set_seal(path)
    return open_map(path, (num_images, num_classes))


def _list_images(folder: Path) -> list[StoredFile]:
    try:
        with os.scandir(folder) as entries:
            listed = [
                StoredFile(entry.name, entry.stat().st_size, folder, entry.stat().st_mtime_ns)
                for entry in entries
                if entry.name.endswith(_SUFFIX)
            ]
    except OSError as error:
        raise DataError(f"{folder} cannot be listed: {error.strerror}. Put the images there.") from error
    listed.sort(key=lambda file: file.name)
    return listed


def _image_id(file: StoredFile) -> str:
    return file.name.removesuffix(_SUFFIX)


def _read_classes(path: Path) -> list[str]:
    classes = [line for line in stored_file(path).lines() if line]
    if len(set(classes)) != len(classes) or not classes:
        raise DataError(f"{path}: {len(classes)} lines with {len(set(classes))} classes; each stands once.")
    return classes
