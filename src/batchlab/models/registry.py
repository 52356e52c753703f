"""Models by name, named as in the published data. Checking a name imports no training framework."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from batchlab.core.entry import Entry, Option, add_entry, by_name, find_entry, is_whole, whole_number
from batchlab.core.workload import Named
from batchlab.errors import SpecError

if TYPE_CHECKING:
    from batchlab.models.base import Network


@dataclass(frozen=True)
class ModelEntry(Entry):
    """A model: its code is a class, called with `input_shape`, `num_classes`, what is settled and the options by name.

    A language model is called with `num_tokens` and `vocabulary` in place of the first two.
    """

    is_packable: bool = False
    """Whether several trials train together: in a form written for that. `torch.func` could vectorise others, but 4 or
    8 ResNet-8 together are quicker than alone only below batch size 16, and take up to twice the time at 64."""

    is_language_model: bool = False


_ROOM = "batchlab.models"
MOST_UNITS = 1_000_000
MOST_LAYERS = 1_000


def _whole_numbers(fewest: int, most: int, largest: int = MOST_UNITS) -> Option:
    def holds(value: Any) -> bool:
        is_list = isinstance(value, list | tuple) and fewest <= len(value) <= most
        return is_list and all(is_whole(number, 1, largest) for number in value)

    count = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return Option(f"a list of {count} whole numbers from 1 to {largest:,}", holds)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1


_WHOLE_NUMBER = whole_number(1, MOST_UNITS)
_SHARE = Option("at least 0 and below 1", _is_share)


def _simple_cnn(name: str, filters: tuple[int, int], hidden: int) -> ModelEntry:
    sizes = {"filters": filters, "hidden": hidden}
    return ModelEntry(
        name, f"{_ROOM}.simple_cnn", "SimpleCnn", settled=sizes, options={"dropout": _SHARE}, is_packable=True
    )


def _fully_connected(name: str, widths: Sequence[int]) -> ModelEntry:
    return ModelEntry(name, f"{_ROOM}.fully_connected", "FullyConnected", settled={"widths": widths}, is_packable=True)


def _transformer(name: str, layers: int, width: int, feed_forward: int, heads: int) -> ModelEntry:
    sizes = {"layers": layers, "width": width, "feed_forward": feed_forward, "heads": heads}
    options = {**dict.fromkeys(sizes, _WHOLE_NUMBER), "layers": whole_number(1, MOST_LAYERS)}
    module = f"{_ROOM}.transformer"
    return ModelEntry(name, module, "Transformer", settled=sizes, options=options, is_language_model=True)


MODELS = by_name(
    _fully_connected("softmax_regression", []),
    _simple_cnn("simple_cnn_narrow", (16, 32), 512),
    _simple_cnn("simple_cnn_base", (32, 64), 1024),
    _simple_cnn("simple_cnn_wide", (64, 128), 2048),
    ModelEntry(
        "resnet_8",
        f"{_ROOM}.resnet_8",
        "ResNet8",
        settled={"filters": (16, 32, 64)},
        options={"filters": _whole_numbers(3, 3)},
    ),
    ModelEntry(
        "resnet_50",
        f"{_ROOM}.resnet_50",
        "ResNet50",
        settled={"blocks": (3, 4, 6, 3), "width": 64, "ghost_size": 32},
        options={"blocks": _whole_numbers(1, 4, MOST_LAYERS), "width": _WHOLE_NUMBER, "ghost_size": _WHOLE_NUMBER},
    ),
    ModelEntry(
        "vgg_11",
        f"{_ROOM}.vgg_11",
        "Vgg11",
        settled={"filters": (64, 128, 256, 256, 512, 512, 512, 512), "hidden": 4096},
        options={"filters": _whole_numbers(8, 8), "hidden": _WHOLE_NUMBER},
    ),
    # The sizes of the base are the paper's; those of the others are ours.
    _transformer("transformer_base", 6, 512, 2048, 8),
    _transformer("transformer_wide", 6, 1024, 4096, 16),
    _transformer("transformer_shallow", 2, 512, 2048, 8),
    _transformer("transformer_narrow_and_shallow", 2, 256, 1024, 4),
    ModelEntry(
        "lstm",
        f"{_ROOM}.lstm",
        "Lstm",
        settled={"embedding": 1024, "hidden": 2048, "projection": 512},
        options=dict.fromkeys(("embedding", "hidden", "projection"), _WHOLE_NUMBER),
        is_language_model=True,
    ),
)
_FULLY_CONNECTED = re.compile(r"fc(_[1-9][0-9]{0,5})+")


def check_model(model: Named) -> None:
    """Raise SpecError unless `model` is known and its options make sense."""
    entry = _entry(model)
    entry.check("model", model.options)
    sizes = {**entry.settled, **model.options}
    if "heads" in sizes and sizes["width"] % sizes["heads"] != 0:
        raise SpecError(
            f"width = {sizes['width']} of model {model.name} must be a multiple of heads = {sizes['heads']}."
        )


def is_packable(model: Named) -> bool:
    """Return whether several trials of this model can train at once, in one pack."""
    return _entry(model).is_packable


def ghost_size(model: Named) -> int:
    """Return how many examples of a batch are normalised together: a batch may be computed in multiples of it."""
    sizes = {**_entry(model).settled, **model.options}
    return int(sizes.get("ghost_size", 1))


def build_model(model: Named, input_shape: Sequence[int], num_classes: int) -> Network:
    """Return the model for inputs of one example's shape; for tokens, (num_tokens,) and the size of the vocabulary."""
    check_model(model)
    entry = _entry(model)
    ends: dict[str, object] = {"input_shape": input_shape, "num_classes": num_classes}
    if entry.is_language_model:
        ends = {"num_tokens": input_shape[0], "vocabulary": num_classes}
    made: Network = entry.make(model.options, **ends)
    return made


def register(entry: ModelEntry) -> None:
    """Add a model from outside; InputError where its name is taken."""
    add_entry("model", entry, MODELS)


def is_language_model(model: Named) -> bool:
    """Return whether the model reads tokens, not images."""
    return _entry(model).is_language_model


def _entry(model: Named) -> ModelEntry:
    if _FULLY_CONNECTED.fullmatch(model.name):
        return _fully_connected(model.name, [int(width) for width in model.name.split("_")[1:]])
    return find_entry("model", model.name, MODELS, lambda: ["fc_128", "fc_1024_1024 (any widths)", *MODELS])
