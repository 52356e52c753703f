"""imagenet, its halves, and tiny_imagenet: JPEG images in one folder or tar for each class.

ImageNet is read as published: `ILSVRC2012_img_train.tar` (a tar of class tars) and `ILSVRC2012_img_val.tar`, never
unpacked, or the folders `train/<wnid>/` and `val/`. The labels of a flat validation set come from the devkit. Tiny
ImageNet is the folder `tiny-imagenet-200/`, or one tar of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from batchlab.core.seeds import Stream, generator
from batchlab.data import files
from batchlab.data.base import SPLIT_KEY, Dataset, DatasetFacts, Examples, train_subset
from batchlab.data.files import DataState, Source
from batchlab.data.image_cache import colour_view, load_images, stored_side
from batchlab.data.stored_file import StoredFile, list_files, stored_file, tar_members
from batchlab.data.synsets import read_synsets
from batchlab.data.tar_gz import read_members
from batchlab.errors import DataError, shown

# Stored results depend on the numbers: never change one. 0 and 1 are those of `data.base`.
_CLASSES_KEY = 2
_IMAGES_KEY = 3

_TRAIN_IMAGES, _TEST_IMAGES = 1_281_167, 50_045
_FOLDERS = ("imagenet", "ILSVRC2012")
_TRAIN_TAR, _VAL_TAR = "ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar"
_GROUND_TRUTH, _META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"
_DEVKIT = "ILSVRC2012_devkit_t12"
_MOST_DEVKIT_BYTES = 16_000_000  # in one of its files
_MOST_META_BYTES = 1 << 20  # what is packed in it may be a thousand times as large
_TINY_FOLDERS = ("tiny-imagenet", "tiny_imagenet", "tiny-imagenet-subset")
_TINY_NAMES = ("tiny-imagenet-200", "tiny-imagenet-*.tar")
_WNID = re.compile(r"n\d{8}")
_IMAGE_SUFFIXES = (".jpeg", ".jpg", ".png")

IMAGENET = DatasetFacts(
    name="imagenet",
    train_examples=_TRAIN_IMAGES - _TEST_IMAGES,
    val_examples=50_000,
    test_examples=_TEST_IMAGES,
    input_shape=(3, 224, 224),
    num_classes=1000,
    metrics=("classification_error", "cross_entropy_error"),
    options=("train_examples", "image_size"),
    source="Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge 2012; licence: research only.",
    place=f"{_TRAIN_TAR}, {_VAL_TAR} and {_DEVKIT}.tar.gz, or the folders train/ and val/,",
)
# How many images a half has depends on the classes drawn and on rounding in each; these are the even halves.
IMAGENET_HALF_IMAGES = replace(IMAGENET, name="imagenet_half_images", train_examples=615_561)
IMAGENET_HALF_CLASSES = replace(
    IMAGENET,
    name="imagenet_half_classes",
    train_examples=615_561,
    val_examples=25_000,
    test_examples=25_022,
    num_classes=500,
)
TINY_IMAGENET = replace(
    IMAGENET,
    name="tiny_imagenet",
    train_examples=96_094,
    val_examples=10_000,
    test_examples=3_906,
    input_shape=(3, 64, 64),
    num_classes=200,
    source="Tiny ImageNet: 200 classes of ImageNet at 64x64 pixels; licence: research only.",
    place="tiny-imagenet-200/, or one tar of it (tiny-imagenet-*.tar),",
)


def state(data_dir: Path | None) -> DataState:
    """Return whether the training images of ImageNet are there."""
    path = files.find_any((_TRAIN_TAR, "train"), _FOLDERS, data_dir)
    if path is None or (path.is_dir() and not any(_WNID.fullmatch(child.name) for child in path.iterdir())):
        return "missing"
    return "present"


def tiny_state(data_dir: Path | None) -> DataState:
    """Return whether Tiny ImageNet is there."""
    return files.state_of_any(_TINY_NAMES, _TINY_FOLDERS, data_dir)


def load(facts: DatasetFacts, options: Mapping[str, Any], source: Source) -> Dataset:
    """Return ImageNet or a half of it: bytes, somewhat larger than `image_size` (224), and how they are viewed.

    The official validation images validate. 50,045 of the training images, drawn once, are the test set, and the same
    share of a smaller set. Then `imagenet_half_images` keeps half of the other images of every class, rounded up;
    `imagenet_half_classes` keeps half of the classes in all three splits. Labels follow the sorted wnids.
    """
    path = source.find_any((_TRAIN_TAR, "train"), _FOLDERS)
    if path is None:
        raise files.missing(facts.name, facts.place)
    return _dataset(facts, options, _read_official(path))


def load_tiny(options: Mapping[str, Any], source: Source) -> Dataset:
    """Return Tiny ImageNet, split as `load` splits ImageNet; `image_size` is 64 unless the options say otherwise."""
    path = source.find_any(_TINY_NAMES, _TINY_FOLDERS)
    if path is None:
        raise files.missing(TINY_IMAGENET.name, TINY_IMAGENET.place)
    return _dataset(TINY_IMAGENET, options, _read_tiny(path))


@dataclass(frozen=True)
class _Images:
    """Files and the wnid of each, in one order."""

    sources: list[StoredFile]
    wnids: np.ndarray

    def at(self, rows: np.ndarray) -> _Images:
        return _Images([self.sources[row] for row in np.arange(len(self.sources))[rows]], self.wnids[rows])


@dataclass(frozen=True)
class _Tree:
    """What was found: official training and validation images, and where, for errors."""

    path: Path
    train: _Images
    val: _Images


def _dataset(facts: DatasetFacts, options: Mapping[str, Any], tree: _Tree) -> Dataset:
    classes = np.unique(tree.train.wnids)
    if facts.name == IMAGENET_HALF_CLASSES.name:
        classes = _half(classes, _CLASSES_KEY)
    splits = _splits(facts, tree, classes, options.get("train_examples"))
    image_size = options.get("image_size", facts.input_shape[-1])
    name = facts.name.partition("_half_")[0]  # the halves share the images that they validate and test on

    def examples(split: str) -> Examples:
        images = splits[split]
        labels = np.searchsorted(classes, images.wnids).astype(np.int64)
        return Examples(load_images(f"{name}-{split}", images.sources, stored_side(image_size)), labels)

    return Dataset(
        name=facts.name,
        train=examples("train"),
        val=examples("val"),
        test=examples("test"),
        num_classes=len(classes),
        view=colour_view(image_size),
    )


def _splits(facts: DatasetFacts, tree: _Tree, classes: np.ndarray, train_examples: int | None) -> dict[str, _Images]:
    held_out = _held_out(len(tree.train.sources))
    splits = {"train": tree.train.at(~held_out), "val": tree.val, "test": tree.train.at(held_out)}
    splits = {split: images.at(np.isin(images.wnids, classes)) for split, images in splits.items()}
    if facts.name == IMAGENET_HALF_IMAGES.name:
        splits["train"] = splits["train"].at(_half_of_each_class(splits["train"].wnids))
    present = len(splits["train"].sources)
    if train_examples is not None and train_examples < present:
        splits["train"] = splits["train"].at(train_subset(present, train_examples))
    for split, images in splits.items():
        if not images.sources:
            raise DataError(f"{tree.path}: there are no {split} images for {facts.name}; it holds too few.")
    return splits


def _held_out(num_images: int) -> np.ndarray:
    """Return which of the training images are the test set, as flags."""
    num_test = max(1, round(num_images * _TEST_IMAGES / _TRAIN_IMAGES))
    flags = np.zeros(num_images, bool)
    flags[generator(0, Stream.SUBSET, SPLIT_KEY).permutation(num_images)[:num_test]] = True
    return flags


def _half(values: np.ndarray, *key: int) -> np.ndarray:
    """Return half of the values, rounded up, drawn once and in their order."""
    drawn = generator(0, Stream.SUBSET, *key).permutation(len(values))[: -(-len(values) // 2)]
    return values[np.sort(drawn)]


def _half_of_each_class(wnids: np.ndarray) -> np.ndarray:
    """Return the rows of half of the images of every class, ascending."""
    _, starts = np.unique(wnids, return_index=True)  # images of a class stand together
    rows = np.split(np.arange(len(wnids)), starts[1:])
    return np.concatenate([_half(of_class, _IMAGES_KEY, number) for number, of_class in enumerate(rows)])


# Reading what is there


def _read_official(path: Path) -> _Tree:
    root = path.parent
    train = _class_tars(path) if path.is_file() else _class_folders(path, list_files(path))
    found = next((place for place in (root / _VAL_TAR, root / "val") if place.exists()), None)
    if found is None:
        raise DataError(f"{root}: neither {_VAL_TAR} nor val/ is there. Put one of them beside {path.name}.")
    listed = [file for file in list_files(found) if _is_image(file)]
    if any("/" in file.name for file in listed):
        val = _class_folders(found, listed)
    else:
        val = _Images(listed, _ground_truth(root, len(listed)))
    return _checked(_Tree(root, train, val), found)


def _read_tiny(path: Path) -> _Tree:
    inside = {_below_top(file.name, path): file for file in list_files(path)}
    train = [file for name, file in inside.items() if name.startswith("train/") and _is_image(file)]
    wnids = [_below_top(file.name, path).split("/")[1] for file in train]
    filled = set(wnids)
    for wnid in _text_of(inside, "wnids.txt", path).lines():
        if wnid and wnid not in filled:
            raise DataError(f"{path}: class {wnid} of wnids.txt has no training images in train/{wnid}.")
    annotations = _text_of(inside, "val/val_annotations.txt", path)
    labels = dict(line.split("\t")[:2] for line in annotations.lines() if "\t" in line)
    val = [file for name, file in inside.items() if name.startswith("val/") and _is_image(file)]
    for file in val:
        if _last_part(file) not in labels:
            raise DataError(f"{annotations}: it has no line for {_last_part(file)}.")
    val_wnids = np.array([labels[_last_part(file)] for file in val])
    return _checked(_Tree(path, _Images(train, np.array(wnids)), _Images(val, val_wnids)), annotations)


def _text_of(inside: Mapping[str, StoredFile], name: str, path: Path) -> StoredFile:
    if name not in inside:
        raise DataError(f"{path}: {name} is missing. Restore it from the published set.")
    return inside[name]


def _checked(tree: _Tree, labelled_by: object) -> _Tree:
    """Return the tree if it has images, and none to validate on of a class that is not trained on."""
    if not tree.train.sources:
        raise DataError(f"{tree.path}: there are no training images in folders named by wnid.")
    unknown = np.flatnonzero(~np.isin(tree.val.wnids, tree.train.wnids))
    if len(unknown):
        row = unknown[0]
        raise DataError(
            f"{labelled_by}: {tree.val.sources[row].name} is of class {tree.val.wnids[row]},"
            f" which has no training images in {tree.path}."
        )
    return tree


def _class_folders(path: Path, listed: Iterable[StoredFile]) -> _Images:
    """Return the images below folders that are named by wnid."""
    images = [file for file in listed if _is_image(file) and "/" in file.name]
    wnids = np.array([file.name.split("/")[0] for file in images])
    named, filled = sorted(path.iterdir()) if path.is_dir() else [], set(wnids.tolist())
    for folder in named:
        if folder.is_dir() and folder.name not in filled:
            raise DataError(f"{folder}: the class folder holds no images. Fill it or remove it.")
    return _Images(images, wnids)


def _class_tars(path: Path) -> _Images:
    """Return the images in a tar of tars, each named by its wnid."""
    images: list[StoredFile] = []
    wnids: list[str] = []
    for inner in sorted(tar_members(path), key=lambda file: file.name):
        members = [file for file in tar_members(inner) if _is_image(file)]
        if not members:
            raise DataError(f"{inner}: the class tar holds no images.")
        images += sorted(members, key=lambda file: file.name)
        wnids += [_last_part(inner).removesuffix(".tar")] * len(members)
    return _Images(images, np.array(wnids))


def _ground_truth(root: Path, num_images: int) -> np.ndarray:
    """Return the wnid of every validation image in the order of their names."""
    place, content = _devkit_file(root, _GROUND_TRUTH)
    numbers = content.decode("ascii", "replace").split()
    if len(numbers) != num_images:
        raise DataError(f"{place}: {len(numbers)} lines for {num_images} validation images; give one for each.")
    meta_place, meta = _devkit_file(root, _META)
    if len(meta) > _MOST_META_BYTES:
        raise DataError(f"{meta_place}: {len(meta):,} bytes, more than {_MOST_META_BYTES:,}. Restore the devkit.")
    try:
        wnids = read_synsets(meta)
    except ValueError as error:
        raise DataError(
            f"{meta_place}: it holds no table of synsets ({shown(str(error))}). Restore the devkit."
        ) from error
    for line, number in enumerate(numbers, start=1):
        if number not in wnids:
            raise DataError(f"{place}, line {line}: label {number} is not among the {len(wnids)} of {meta_place}.")
    return np.array([wnids[number] for number in numbers])


def _devkit_file(root: Path, name: str) -> tuple[str, bytes]:
    """Return a file of the devkit and its place, unpacked or not."""
    for path in (root / name, root / "data" / name, root / _DEVKIT / "data" / name):
        if path.exists():
            return str(path), stored_file(path).read()
    packed = root / f"{_DEVKIT}.tar.gz"
    content = read_members(packed, [name], _MOST_DEVKIT_BYTES).get(name) if packed.exists() else None
    if content is None:
        raise DataError(f"{root}: {name} is missing. Put {_DEVKIT}.tar.gz as published beside the validation images.")
    return f"{packed}: {name}", content


def _is_image(file: StoredFile) -> bool:
    return file.name.lower().endswith(_IMAGE_SUFFIXES)


def _last_part(file: StoredFile) -> str:
    return file.name.rpartition("/")[2]


def _below_top(name: str, path: Path) -> str:
    """Return a name without the top folder that a tar of Tiny ImageNet has."""
    return name if path.is_dir() else name.partition("/")[2]
