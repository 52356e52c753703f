"""Every dataset by name: its facts, whether its files are there, and how it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from batchlab.core.workload import Named
from batchlab.data import digits, files, mnist
from batchlab.data.base import Dataset, DatasetFacts
from batchlab.data.files import DataState, Download, Reader
from batchlab.errors import SpecError, unknown_name

__all__ = ["DataState", "Dataset", "DatasetFacts", "data_state", "facts", "load", "names"]

NQM = DatasetFacts(
    name="nqm",
    input_shape=(100,),
    metrics=("risk",),
    splits=("val",),
    options=("dimension",),
    source="The noisy quadratic model: computed, not read.",
)

_FACTS = {known.name: known for known in (digits.DIGITS, mnist.MNIST, mnist.FASHION_MNIST, NQM)}

_LOADERS: dict[str, Callable[[Reader], Dataset]] = {
    "digits": lambda read: digits.load(),
    "mnist": partial(mnist.load, mnist.MNIST),
    "fashion_mnist": partial(mnist.load, mnist.FASHION_MNIST),
}


def names() -> list[str]:
    """Return the names of all datasets, sorted."""
    return sorted(_FACTS)


def facts(dataset: Named) -> DatasetFacts:
    """Return what is known of `dataset`, its options applied; nothing is read. SpecError for what is not known.

    >>> facts(Named(name="mnist", train_examples=6875)).train_examples
    6875
    """
    if dataset.name not in _FACTS:
        raise SpecError(unknown_name("dataset", dataset.name, _FACTS))
    known = _FACTS[dataset.name]
    for option, value in dataset.options.items():
        if option not in known.options:
            raise SpecError(unknown_name(f"{dataset.name} option", option, known.options))
        known = _OPTIONS[option](known, value)
    return known


def load(dataset: Named, data_dir: Path | None = None, download: Download = files.download) -> Dataset:
    """Return `dataset` in memory; files come from `data_dir` or the other places that `data.files` lists.

    With `train_examples` it is the subset that `Dataset.take` draws with seed 0, whatever the sweep's seed.
    """
    known = facts(dataset)
    if dataset.name not in _LOADERS:
        raise SpecError(f'Dataset "{dataset.name}" has no examples to load: it is computed by its own trainer.')
    full = _LOADERS[dataset.name](partial(files.read, data_dir=data_dir, download=download))
    if "train_examples" not in dataset.options:
        return full
    assert known.train_examples is not None
    return full.take(known.train_examples)


def data_state(dataset: Named, data_dir: Path | None = None) -> DataState:
    """Return `present` if `dataset` can be loaded as things are, `fetchable` if that needs the network, or `missing`.

    Only names and sizes of files are looked at; `load` proves their checksums.
    """
    states = {files.state(file, data_dir) for file in facts(dataset).files}
    if "missing" in states:
        return "missing"
    return "fetchable" if "fetchable" in states else "present"


def _with_train_examples(known: DatasetFacts, value: Any) -> DatasetFacts:
    assert known.train_examples is not None
    if type(value) is not int or not 1 <= value <= known.train_examples:
        raise SpecError(
            f"`train_examples` = {value!r} of dataset {known.name}:"
            f" give a whole number from 1 to {known.train_examples}."
        )
    return replace(known, train_examples=value)


def _with_dimension(known: DatasetFacts, value: Any) -> DatasetFacts:
    if type(value) is not int or value < 1:
        raise SpecError(f"`dimension` = {value!r} of dataset {known.name}: give a whole number from 1.")
    return replace(known, input_shape=(value,))


_OPTIONS: dict[str, Callable[[DatasetFacts, Any], DatasetFacts]] = {
    "train_examples": _with_train_examples,
    "dimension": _with_dimension,
}
