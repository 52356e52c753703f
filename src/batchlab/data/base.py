"""Examples and datasets: plain arrays in memory, checked when made, and the facts known without loading them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from batchlab.core.evaluation import Split
from batchlab.core.seeds import Stream, generator
from batchlab.data.files import DataFile

# The first key of Stream.SUBSET says what is drawn. Stored results depend on the numbers: never change one.
SPLIT_KEY = 0
TRAIN_SUBSET_KEY = 1


Task = Literal["classification", "multi_label", "language_model"]
"""What is asked of a model: one class of each example, any number of classes, or every next token."""

METRICS: dict[Task, tuple[str, ...]] = {
    "classification": ("cross_entropy_error", "classification_error"),
    "multi_label": ("cross_entropy_error", "average_precision"),
    "language_model": ("cross_entropy_error",),
}
"""The metrics of each task, without their split."""

_INPUT_KINDS = (np.float32, np.uint8, np.uint16, np.int32)


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and their labels, in one order. The arrays may be memory maps.

    Images may be kept as bytes, [num_examples, height, width, channels], where the dataset says how they are viewed.
    Sentences are tokens [num_examples, num_tokens], filled up with PADDING; they are their own labels.
    """

    inputs: np.ndarray  # [num_examples, *input_shape] float32, bytes, or tokens
    labels: np.ndarray  # [num_examples] int64; [num_examples, num_classes] uint8 of several labels; or the tokens

    def __post_init__(self) -> None:
        if self.inputs.dtype not in _INPUT_KINDS or self.inputs.ndim < 2:
            raise ValueError(f"inputs are {_described(self.inputs)}; make them float32 [num_examples, *input_shape]")
        if not (self.labels.dtype == np.int64 and self.labels.ndim == 1) and not (
            self.labels.dtype in (np.uint8, np.uint16, np.int32) and self.labels.ndim == 2
        ):
            raise ValueError(f"labels are {_described(self.labels)}; make them int64 [num_examples]")
        if len(self.inputs) != len(self.labels):
            raise ValueError(f"{len(self.inputs)} inputs have {len(self.labels)} labels; give one label for each input")
        if len(self.labels) == 0:
            raise ValueError("there are no examples; give at least one")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return self.inputs.shape[1:]

    def at(self, rows: slice | np.ndarray) -> Examples:
        """Return the examples in these rows; a slice shares the memory."""
        inputs = self.inputs[rows]
        return Examples(inputs, inputs if self.labels is self.inputs else self.labels[rows])


@dataclass(frozen=True)
class ImageView:
    """How images that are kept as bytes become inputs: a square of `size` pixels, scaled by `mean` and `std`.

    While training the square lies at random and is flipped half of the time; otherwise it lies in the middle.
    """

    size: int
    mean: tuple[float, ...]
    """For each channel, of values in 0 to 1."""

    std: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Three splits of examples with one input shape; labels count from 0 to `num_classes` - 1.

    Of sentences, `num_classes` is the size of the vocabulary and the splits may have different lengths.
    """

    name: str
    train: Examples
    val: Examples
    test: Examples
    num_classes: int
    task: Task = "classification"
    view: ImageView | None = None
    """Set where the inputs are kept as bytes."""

    def __post_init__(self) -> None:
        for split, examples in {"train": self.train, "val": self.val, "test": self.test}.items():
            if examples.input_shape != self.train.input_shape and self.task != "language_model":
                raise ValueError(f"{self.name}: {split} inputs are {examples.input_shape}, not {self.input_shape}")
            if self.task != "classification":
                continue
            low, high = examples.labels.min(), examples.labels.max()
            if low < 0 or high >= self.num_classes:
                raise ValueError(f"{self.name}: {split} labels are {low} to {high}, not 0 to {self.num_classes - 1}")

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input as a model sees it."""
        if self.view is not None:
            return (self.train.input_shape[-1], self.view.size, self.view.size)
        return self.train.input_shape

    def take(self, train_examples: int, seed: int = 0) -> Dataset:
        """Return the dataset with `train_examples` of its training examples; `val` and `test` are unchanged.

        They are drawn uniformly without replacement and keep their order. For one seed the choice is nested:
        a smaller subset is part of every larger one, because each is the head of the same permutation.
        """
        if not 1 <= train_examples <= len(self.train):
            raise ValueError(f"train_examples = {train_examples} is not in 1 to {len(self.train)} ({self.name})")
        return replace(self, train=self.train.at(train_subset(len(self.train), train_examples, seed)))


def train_subset(num_examples: int, train_examples: int, seed: int = 0) -> np.ndarray:
    """Return the rows that `Dataset.take` keeps, ascending: `train_examples` of `num_examples`."""
    permutation = generator(0, Stream.SUBSET, TRAIN_SUBSET_KEY, seed).permutation(num_examples)
    return np.sort(permutation[:train_examples])


@dataclass(frozen=True, kw_only=True)
class DatasetFacts:
    """What is known of a dataset before anything is read."""

    name: str
    input_shape: tuple[int, ...]
    metrics: tuple[str, ...]
    """Names without their split: `classification_error`."""

    source: str
    """Who made it, and its licence."""

    train_examples: int | None = None
    """None where a split is a distribution, not a set: training never runs out, metrics are exact.

    None also where the number is known only once the files have been read.
    """

    val_examples: int | None = None
    test_examples: int | None = None
    num_classes: int | None = None
    task: Task = "classification"
    splits: tuple[Split, ...] = ("train", "val", "test")
    """The splits that can be evaluated."""

    options: tuple[str, ...] = ("train_examples",)
    """The options that a spec may give beside the name."""

    files: tuple[DataFile, ...] = ()
    """The published files it is read from, known by checksum; none where it comes with the installation."""

    place: str = ""
    """Where the user puts what cannot be fetched: names of files and folders below `--data DIR`."""


def _described(array: np.ndarray) -> str:
    return f"{array.dtype} {list(array.shape)}"
