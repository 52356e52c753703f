"""Every dataset by name: its facts, whether its files are there, and how it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from batchlab.core.workload import Named
from batchlab.data import (
    cifar_10,
    common_crawl,
    digits,
    files,
    imagenet,
    lm1b,
    mnist,
    open_images,
    scene,
    tiny_shakespeare,
    wikitext_2,
)
from batchlab.data.base import Dataset, DatasetFacts
from batchlab.data.files import DataState, Download, Source
from batchlab.data.scaling import SCALINGS
from batchlab.data.vocabulary import SMALLEST_SIZE
from batchlab.errors import DataError, SpecError, shown, spelled, unknown_name

__all__ = ["DataState", "Dataset", "DatasetFacts", "data_state", "facts", "load", "names"]

NQM = DatasetFacts(
    name="nqm",
    input_shape=(100,),
    metrics=("risk",),
    splits=("val",),
    options=("dimension",),
    source="The noisy quadratic model: computed, not read.",
)

_LARGEST_IMAGE_SIZE = 1024
_LARGEST_VOCABULARY = 1_000_000
_LARGEST_DIMENSION = 10_000_000
_MOST_TOKENS = 65_536


@dataclass(frozen=True)
class Entry:
    """A dataset: its facts, how it is loaded with the options of a spec, and how its files are looked for."""

    facts: DatasetFacts
    load: Callable[[Mapping[str, Any], Source], Dataset] | None = None
    """May leave `train_examples` to the registry. None where there is nothing to load."""

    state: Callable[[Path | None], DataState] | None = None
    """Looks at names alone. None where all files are among `facts.files`."""


def _scaling(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scaling as a spec has it; where it names none, the dataset's own holds."""
    return {name: value for name, value in options.items() if name == "scaling"}


_ENTRIES = (
    Entry(NQM),
    Entry(digits.DIGITS, lambda options, source: digits.load(**_scaling(options))),
    Entry(mnist.MNIST, lambda options, source: mnist.load(mnist.MNIST, source.read, **_scaling(options))),
    Entry(
        mnist.FASHION_MNIST,
        lambda options, source: mnist.load(mnist.FASHION_MNIST, source.read, **_scaling(options)),
    ),
    Entry(cifar_10.CIFAR_10, lambda options, source: cifar_10.load(source, **_scaling(options)), cifar_10.state),
    Entry(scene.SCENE, lambda options, source: scene.load(source), scene.state),
    Entry(imagenet.IMAGENET, partial(imagenet.load, imagenet.IMAGENET), imagenet.state),
    Entry(imagenet.IMAGENET_HALF_IMAGES, partial(imagenet.load, imagenet.IMAGENET_HALF_IMAGES), imagenet.state),
    Entry(imagenet.IMAGENET_HALF_CLASSES, partial(imagenet.load, imagenet.IMAGENET_HALF_CLASSES), imagenet.state),
    Entry(imagenet.TINY_IMAGENET, imagenet.load_tiny, imagenet.tiny_state),
    Entry(open_images.OPEN_IMAGES_V4, open_images.load, open_images.state),
    Entry(lm1b.LM1B, lm1b.load, lm1b.state),
    Entry(lm1b.LM1B_SAMPLE, lm1b.load_sample),
    Entry(common_crawl.COMMON_CRAWL, common_crawl.load, common_crawl.state),
    Entry(wikitext_2.WIKITEXT_2, wikitext_2.load),
    Entry(tiny_shakespeare.TINY_SHAKESPEARE, lambda options, source: tiny_shakespeare.load(source.read)),
)

_BY_NAME = {entry.facts.name: entry for entry in _ENTRIES}


def names() -> list[str]:
    """Return the names of all datasets, sorted."""
    return sorted(_BY_NAME)


def facts(dataset: Named) -> DatasetFacts:
    """Return what is known of `dataset`, its options applied; nothing is read. SpecError for what is not known.

    >>> facts(Named(name="mnist", train_examples=6875)).train_examples
    6875
    """
    if dataset.name not in _BY_NAME:
        raise SpecError(unknown_name("dataset", dataset.name, _BY_NAME))
    known = _BY_NAME[dataset.name].facts
    for option, value in dataset.options.items():
        if option not in known.options:
            raise SpecError(unknown_name(f"{dataset.name} option", option, known.options))
        known = _OPTIONS[option](known, value)
    return known


def load(dataset: Named, data_dir: Path | None = None, download: Download = files.download) -> Dataset:
    """Return `dataset` in memory; files come from `data_dir` or the other places that `data.files` lists.

    With `train_examples` it is the subset that `Dataset.take` draws with seed 0, whatever the sweep's seed.
    """
    facts(dataset)
    loader = _BY_NAME[dataset.name].load
    if loader is None:
        raise SpecError(f'Dataset "{dataset.name}" has no examples to load: it is computed by its own trainer.')
    loaded = loader(dataset.options, Source(data_dir, download))
    wanted, present = dataset.options.get("train_examples"), len(loaded.train)
    if wanted is None or wanted == present:
        return loaded
    if wanted > present:
        raise DataError(f"`train_examples` = {wanted} of dataset {dataset.name}: the files hold only {present}.")
    return loaded.take(wanted)


def data_state(dataset: Named, data_dir: Path | None = None) -> DataState:
    """Return `present` if `dataset` can be loaded as things are, `fetchable` if that needs the network, or `missing`.

    Only names and sizes of files are looked at; `load` proves their checksums.
    """
    known, look = facts(dataset), _BY_NAME[dataset.name].state
    if look is not None:
        return look(data_dir)
    states = {files.state(file, data_dir) for file in known.files}
    if "missing" in states:
        return "missing"
    return "fetchable" if "fetchable" in states else "present"


def _with_train_examples(known: DatasetFacts, value: Any) -> DatasetFacts:
    if type(value) is not int or not 1 <= value <= (known.train_examples or value):
        upper = "" if known.train_examples is None else f" to {known.train_examples}"
        raise SpecError(
            f"`train_examples` = {shown(spelled(value))} of dataset {known.name}: give a whole number from 1{upper}."
        )
    return replace(known, train_examples=value)


def _with_dimension(known: DatasetFacts, value: Any) -> DatasetFacts:
    if type(value) is not int or not 1 <= value <= _LARGEST_DIMENSION:
        raise SpecError(
            f"`dimension` = {shown(spelled(value))} of dataset {known.name}:"
            f" give a whole number from 1 to {_LARGEST_DIMENSION}."
        )
    return replace(known, input_shape=(value,))


def _with_image_size(known: DatasetFacts, value: Any) -> DatasetFacts:
    if type(value) is not int or not 1 <= value <= _LARGEST_IMAGE_SIZE:
        raise SpecError(
            f"`image_size` = {shown(spelled(value))} of dataset {known.name}:"
            f" give a whole number from 1 to {_LARGEST_IMAGE_SIZE}."
        )
    return replace(known, input_shape=(*known.input_shape[:-2], value, value))


def _with_vocabulary_size(known: DatasetFacts, value: Any) -> DatasetFacts:
    if type(value) is not int or not SMALLEST_SIZE <= value <= _LARGEST_VOCABULARY:
        raise SpecError(
            f"`vocabulary_size` = {shown(spelled(value))} of dataset {known.name}:"
            f" give a whole number from {SMALLEST_SIZE} to {_LARGEST_VOCABULARY}."
        )
    return replace(known, num_classes=value)


def _with_num_tokens(known: DatasetFacts, value: Any) -> DatasetFacts:
    if type(value) is not int or not 1 <= value <= _MOST_TOKENS:
        raise SpecError(
            f"`num_tokens` = {shown(spelled(value))} of dataset {known.name}:"
            f" give a whole number from 1 to {_MOST_TOKENS}."
        )
    return replace(known, input_shape=(value,))


def _with_heldout_share(known: DatasetFacts, value: Any) -> DatasetFacts:
    if type(value) is not float or not 0 < value < 1:
        raise SpecError(
            f"`heldout_share` = {shown(spelled(value))} of dataset {known.name}: give a number between 0 and 1."
        )
    return known


def _with_scaling(known: DatasetFacts, value: Any) -> DatasetFacts:
    if value not in SCALINGS:
        name = value if isinstance(value, str) else spelled(value)
        raise SpecError(f"`scaling` of dataset {known.name}: {unknown_name('scaling', name, SCALINGS)}")
    return known


_OPTIONS: dict[str, Callable[[DatasetFacts, Any], DatasetFacts]] = {
    "train_examples": _with_train_examples,
    "dimension": _with_dimension,
    "image_size": _with_image_size,
    "vocabulary_size": _with_vocabulary_size,
    "num_tokens": _with_num_tokens,
    "heldout_share": _with_heldout_share,
    "scaling": _with_scaling,
}
