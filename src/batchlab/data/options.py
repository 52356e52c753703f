"""The options of datasets: what each may be, and what it changes of the facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from batchlab.core.entry import Option, check_options, one_of, whole_number
from batchlab.data.base import DatasetFacts
from batchlab.data.scaling import SCALINGS
from batchlab.data.vocabulary import SMALLEST_SIZE

LARGEST_IMAGE_SIZE = 1024
LARGEST_VOCABULARY = 1_000_000
LARGEST_DIMENSION = 10_000_000
MOST_TOKENS = 65_536

OPTIONS = {
    "dimension": whole_number(1, LARGEST_DIMENSION),
    "image_size": whole_number(1, LARGEST_IMAGE_SIZE),
    "vocabulary_size": whole_number(SMALLEST_SIZE, LARGEST_VOCABULARY),
    "num_tokens": whole_number(1, MOST_TOKENS),
    "heldout_share": Option("a number between 0 and 1", lambda value: type(value) is float and 0 < value < 1),
    "scaling": one_of(*SCALINGS),
}
"""But for `train_examples`, of which there are as many as the dataset has."""

CHANGES: dict[str, Callable[[DatasetFacts, Any], DatasetFacts]] = {
    "train_examples": lambda facts, value: replace(facts, train_examples=value),
    "dimension": lambda facts, value: replace(facts, input_shape=(value,)),
    "image_size": lambda facts, value: replace(facts, input_shape=(*facts.input_shape[:-2], value, value)),
    "vocabulary_size": lambda facts, value: replace(facts, num_classes=value),
    "num_tokens": lambda facts, value: replace(facts, input_shape=(value,)),
}


def with_options(facts: DatasetFacts, given: Mapping[str, Any]) -> DatasetFacts:
    """Return the facts of a dataset with these options; SpecError where it has no such option, or no such value."""
    options = {**OPTIONS, "train_examples": whole_number(1, facts.train_examples)}
    check_options("dataset", facts.name, {name: options[name] for name in facts.options}, given)
    for name, value in given.items():
        if name in CHANGES:
            facts = CHANGES[name](facts, value)
    return facts
