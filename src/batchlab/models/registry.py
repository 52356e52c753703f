"""Models by name, named as in the published data. Checking a name imports no training framework."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from batchlab.core.workload import Named
from batchlab.errors import SpecError, shown, unknown_name

if TYPE_CHECKING:
    from batchlab.models.base import Network


@dataclass(frozen=True)
class Option:
    """What the value of an option must be: in words, and as a test."""

    must_be: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Entry:
    """Where the class of a model is, what the model's name settles and which options it takes.

    The class is called with `input_shape`, `num_classes`, what is settled and the options, all by keyword. A language
    model is called with `num_tokens` and `vocabulary` in place of the first two. An option outranks what is settled.
    """

    module: str
    class_name: str
    settled: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)
    is_packable: bool = False
    is_language_model: bool = False


MOST_UNITS = 1_000_000
MOST_LAYERS = 1_000


def _is_whole(value: Any, most: int = MOST_UNITS) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _whole_number(most: int = MOST_UNITS) -> Option:
    return Option(f"a whole number above 0, at most {most:,}", lambda value: _is_whole(value, most))


def _whole_numbers(fewest: int, most: int, largest: int = MOST_UNITS) -> Option:
    def holds(value: Any) -> bool:
        return (
            isinstance(value, list | tuple)
            and fewest <= len(value) <= most
            and all(_is_whole(number, largest) for number in value)
        )

    count = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return Option(f"a list of {count} whole numbers above 0, at most {largest:,}", holds)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1


_WHOLE_NUMBER = _whole_number()
_SHARE = Option("at least 0 and below 1", _is_share)


def _simple_cnn(filters: tuple[int, int], hidden: int) -> Entry:
    return Entry("simple_cnn", "SimpleCnn", {"filters": filters, "hidden": hidden}, {"dropout": _SHARE}, True)


def _fully_connected(widths: Sequence[int]) -> Entry:
    return Entry("fully_connected", "FullyConnected", {"widths": widths}, is_packable=True)


def _transformer(layers: int, width: int, feed_forward: int, heads: int) -> Entry:
    sizes = {"layers": layers, "width": width, "feed_forward": feed_forward, "heads": heads}
    options = {**dict.fromkeys(sizes, _WHOLE_NUMBER), "layers": _whole_number(MOST_LAYERS)}
    return Entry("transformer", "Transformer", sizes, options, is_language_model=True)


_ENTRIES = {
    "softmax_regression": _fully_connected([]),
    "simple_cnn_narrow": _simple_cnn((16, 32), 512),
    "simple_cnn_base": _simple_cnn((32, 64), 1024),
    "simple_cnn_wide": _simple_cnn((64, 128), 2048),
    "resnet_8": Entry("resnet_8", "ResNet8", {"filters": (16, 32, 64)}, {"filters": _whole_numbers(3, 3)}),
    "resnet_50": Entry(
        "resnet_50",
        "ResNet50",
        {"blocks": (3, 4, 6, 3), "width": 64, "ghost_size": 32},
        {"blocks": _whole_numbers(1, 4, MOST_LAYERS), "width": _WHOLE_NUMBER, "ghost_size": _WHOLE_NUMBER},
    ),
    "vgg_11": Entry(
        "vgg_11",
        "Vgg11",
        {"filters": (64, 128, 256, 256, 512, 512, 512, 512), "hidden": 4096},
        {"filters": _whole_numbers(8, 8), "hidden": _WHOLE_NUMBER},
    ),
    # The sizes of the base are the paper's; those of the others are ours.
    "transformer_base": _transformer(6, 512, 2048, 8),
    "transformer_wide": _transformer(6, 1024, 4096, 16),
    "transformer_shallow": _transformer(2, 512, 2048, 8),
    "transformer_narrow_and_shallow": _transformer(2, 256, 1024, 4),
    "lstm": Entry(
        "lstm",
        "Lstm",
        {"embedding": 1024, "hidden": 2048, "projection": 512},
        dict.fromkeys(("embedding", "hidden", "projection"), _WHOLE_NUMBER),
        is_language_model=True,
    ),
}
_FULLY_CONNECTED = re.compile(r"fc(_[1-9][0-9]{0,5})+")
_KNOWN = ["fc_128", "fc_1024_1024 (any widths)", *_ENTRIES]


def check_model(model: Named) -> None:
    """Raise SpecError unless `model` is known and its options make sense."""
    entry = _entry(model)
    known = entry.options
    for option, value in model.options.items():
        if option not in known:
            raise SpecError(unknown_name(f"option of model {model.name}", option, known or {"(none)"}))
        if not known[option].holds(value):
            raise SpecError(f"{option} = {shown(value)} of model {model.name} must be {known[option].must_be}.")
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
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in model.options.items()}
    ends = {"input_shape": input_shape, "num_classes": num_classes}
    if entry.is_language_model:
        ends = {"num_tokens": input_shape[0], "vocabulary": num_classes}
    model_class = getattr(import_module(f"batchlab.models.{entry.module}"), entry.class_name)
    made: Network = model_class(**ends, **{**entry.settled, **options})
    return made


def is_language_model(model: Named) -> bool:
    """Return whether the model reads tokens, not images."""
    return _entry(model).is_language_model


def _entry(model: Named) -> Entry:
    if _FULLY_CONNECTED.fullmatch(model.name):
        return _fully_connected([int(width) for width in model.name.split("_")[1:]])
    if model.name not in _ENTRIES:
        raise SpecError(unknown_name("model", model.name, _KNOWN))
    return _ENTRIES[model.name]
