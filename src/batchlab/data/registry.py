"""Every dataset by name: its facts, whether its files are there, and how it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
from batchlab.data.options import with_options
from batchlab.errors import DataError, SpecError, unknown_name

__all__ = ["DataState", "Dataset", "DatasetFacts", "data_state", "facts", "load", "names"]

NQM = DatasetFacts(
    name="nqm",
    input_shape=(100,),
    metrics=("risk",),
    splits=("val",),
    options=("dimension",),
    source="The noisy quadratic model: computed, not read.",
)


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
    return with_options(_BY_NAME[dataset.name].facts, dataset.options)


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
