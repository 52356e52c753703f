"""A small sibling of each of the paper's workloads: the same code, in minutes on two cores.

Each trains on a named part of the data, or on a small dataset of the same kind, with a narrower model where the
paper's is large. Its goal is easy and its numbers say nothing of the paper's workload, so it goes by a name of its own:
`small/` and the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from batchlab.catalogue.paper import check_name, decay_steps, paper_names, paper_spec, split_name

TRIALS = 4


@dataclass(frozen=True)
class Sibling:
    """What the siblings on one dataset have in common."""

    dataset: Mapping[str, Any]
    goal: str
    batch_sizes: tuple[int, ...]
    max_steps: int
    learning_rate: tuple[float, float] = (0.003, 0.1)
    """With a momentum; plain SGD gets both ends ten times as large."""

    momentum: tuple[float, float] = (0.0, 0.95)


def _images(name: str, train_examples: int, error: float) -> Sibling:
    dataset = {"name": name, "train_examples": train_examples}
    return Sibling(dataset, f"val/classification_error < {error}", (8, 32, 128), 400)


def _tiny_imagenet(train_examples: int) -> Sibling:
    # Tiny ImageNet has no half of its classes, so that both halves are halves of the images.
    dataset = {"name": "tiny_imagenet", "image_size": 32, "train_examples": train_examples}
    return Sibling(dataset, "val/classification_error < 0.9", (32, 64, 256), 400, (0.02, 0.1), (0.8, 0.95))


def _sentences(dataset: Mapping[str, Any]) -> Sibling:
    named = {**dataset, "vocabulary_size": 1000, "num_tokens": 32}
    return Sibling(named, "val/cross_entropy_error < 6.2", (16, 64, 256), 400)


_SIBLINGS = {  # by the dataset of the paper's workload
    "mnist": _images("mnist", 4000, 0.2),
    "mnist_55000": _images("mnist", 4000, 0.2),
    "mnist_27500": _images("mnist", 2000, 0.2),
    "mnist_13750": _images("mnist", 1000, 0.2),
    "mnist_6875": _images("mnist", 500, 0.2),
    "fashion_mnist": _images("fashion_mnist", 4000, 0.3),
    "cifar_10": _images("cifar_10", 4000, 0.75),
    "imagenet": _tiny_imagenet(1600),
    "imagenet_half_images": _tiny_imagenet(800),
    "imagenet_half_classes": _tiny_imagenet(800),
    "open_images_v4": Sibling({"name": "scene"}, "val/average_precision > 0.5", (32, 128, 512), 200),
    "lm1b": _sentences({"name": "lm1b_sample"}),
    "common_crawl": _sentences({"name": "common_crawl", "heldout_share": 0.05}),
}

_MODEL_OPTIONS: dict[str, dict[str, Any]] = {
    "resnet_50": {"blocks": [1, 1, 1, 1], "width": 8},
    "vgg_11": {"filters": [16, 16, 32, 32, 32, 32, 32, 32], "hidden": 128},
    "transformer_base": {"layers": 2, "width": 64, "feed_forward": 128, "heads": 4},
    "transformer_wide": {"layers": 2, "width": 128, "feed_forward": 256, "heads": 8},
    "transformer_shallow": {"layers": 1, "width": 64, "feed_forward": 128, "heads": 4},
    "transformer_narrow_and_shallow": {"layers": 1, "width": 32, "feed_forward": 64, "heads": 2},
    "lstm": {"embedding": 32, "hidden": 64, "projection": 32},
}


def small_names() -> list[str]:
    """Return the names of the workloads that have a small sibling: all of the paper's."""
    return paper_names()


def small_spec(name: str) -> dict[str, Any]:
    """Return the spec of the small sibling of a workload of the paper, as its TOML would read.

    >>> small_spec("mnist/fc_1024/sgd")["workload"]["alias"]
    'small/mnist/fc_1024/sgd'
    """
    check_name("small", name)
    paper = paper_spec(name)
    dataset, model, _ = split_name(name)
    sibling = _SIBLINGS[dataset]
    workload = {**paper["workload"], "dataset": dict(sibling.dataset), "alias": f"small/{name}"}
    if model in _MODEL_OPTIONS:
        workload["model"] = {"name": model, **_MODEL_OPTIONS[model]}
    return {
        "name": f"small-{name.replace('/', '--')}",
        "seed": 0,
        "workload": workload,
        "sweep": _plan(sibling),
        "search_space": _search_space(sibling, paper["search_space"]),
    }


def _plan(sibling: Sibling) -> dict[str, Any]:
    return {
        "batch_sizes": list(sibling.batch_sizes),
        "trials": TRIALS,
        "max_steps": sibling.max_steps,
        "goal": sibling.goal,
        "evaluate": {"growth": 1.5},
    }


def _search_space(sibling: Sibling, paper: dict[str, Any]) -> dict[str, Any]:
    """Return the paper's dimensions, with ranges that so few trials can search."""
    low, high = (end if "momentum" in paper else 10 * end for end in sibling.learning_rate)
    ranges = {
        "learning_rate": {"min": low, "max": high, "scale": "log"},
        "momentum": {"min": sibling.momentum[0], "max": sibling.momentum[1], "scale": "reverse_log"},
        "learning_rate_decay_steps": decay_steps(sibling.max_steps),
    }
    return {name: ranges.get(name, dimension) for name, dimension in paper.items()}
