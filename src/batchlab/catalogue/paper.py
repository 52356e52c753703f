"""The 35 workloads of the paper, by their names in its archive, as specs.

Names, batch sizes, goals, numbers of trials, fixed end factors and two search spaces are the paper's; the rest is ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from batchlab.catalogue.lengths import lengths
from batchlab.errors import SpecError, unknown_name
from batchlab.published.goals import paper_goal
from batchlab.published.inventory import inventory
from batchlab.published.trials import paper_trials

SearchSpaceSource = Literal["published", "ours"]

MAX_ATTEMPTS = 500

_GEOMETRIC = {"growth": 1.03}
_EVERY_10 = {"every": 10, "growth": 1.03}
_EVERY_500 = {"every": 500}  # the steps that the archive's measurements of the large workloads fall on
_ALL_SPLITS = ["train", "val", "test"]
_SCALING = {"scaling": "per_image"}  # inferred, see docs/results/preprocessing


@dataclass(frozen=True)
class Family:
    """What workloads whose names begin alike have in common."""

    max_steps: int
    max_examples: int | None = None
    evaluate: Mapping[str, float] = field(default_factory=lambda: _GEOMETRIC)
    learning_rate: tuple[float, float] = (1e-4, 1.0)
    """With a momentum; plain SGD, whose steps lack its factor 1 / (1 - momentum), gets both ends ten times as large."""

    momentum: tuple[float, float] = (0.0, 0.999)
    end_factor: float | Literal["tuned"] | None = None
    """The end of a linear decay; None for a constant learning rate."""

    label_smoothing: tuple[float, ...] = ()


_RESNET_50 = Family(
    max_steps=600_000,
    evaluate=_EVERY_500,
    learning_rate=(1e-4, 10.0),
    momentum=(0.9, 0.9999),
    end_factor="tuned",
    label_smoothing=(0.0, 0.01, 0.1),
)
_TRANSFORMER = Family(
    max_steps=1_000_000,
    max_examples=1_200_000_000,
    evaluate=_EVERY_500,
    learning_rate=(1e-4, 1e-1),
    momentum=(0.0, 0.9999),
)

_FAMILIES = {  # by how a name begins, the first that fits
    "mnist": Family(200_000, 550_000_000, _EVERY_10),
    "fashion_mnist/": Family(200_000, 550_000_000, _EVERY_10),
    "solution_quality/": Family(5_000_000, 550_000_000, _EVERY_10),  # the largest budgets of Figure 11
    "cifar_10/": Family(200_000, end_factor=0.01),
    "imagenet/resnet_50/": _RESNET_50,
    "imagenet_subsets/": _RESNET_50,
    "open_images_v4/": replace(_RESNET_50, max_steps=1_000_000, label_smoothing=()),
    "imagenet/vgg_11/": Family(2_000_000, evaluate=_EVERY_500, end_factor=0.001),
    "lm1b/lstm/": Family(1_500_000, 10_000_000_000, evaluate=_EVERY_500),
    "lm1b/": _TRANSFORMER,
    "common_crawl/": _TRANSFORMER,
}

_PUBLISHED = frozenset(  # the search spaces that are
    {
        "imagenet/resnet_50/nesterov_momentum",  # for batch size 256, max_steps too; here but for the decay everywhere
        "lm1b/transformer_base/nesterov_momentum",  # the extent of the points in Figure 9, batch sizes 128 to 16384
    }
)


def paper_names() -> list[str]:
    """Return the names of the paper's workloads, in the order of its archive.

    >>> len(paper_names()), paper_names()[0]
    (35, 'cifar_10/resnet_8/nesterov_momentum')
    """
    return list(dict.fromkeys(study.workload for study in inventory()))


def paper_spec(name: str) -> dict[str, Any]:
    """Return the spec of a workload of the paper, as its TOML would read.

    >>> paper_spec("mnist_subsets/mnist_6875/simple_cnn_base/nesterov_momentum")["workload"]["dataset"]
    {'name': 'mnist', 'train_examples': 6875, 'scaling': 'per_image'}
    """
    check_name("paper", name)
    spec = {
        "name": f"paper-{name.replace('/', '--')}",
        "seed": 0,
        "workload": _workload(name),
        "sweep": _plan(name),
        "search_space": _search_space(name),
    }
    return spec if _family(name).end_factor is None else {**spec, "at": _at(name)}


def search_space_source(name: str) -> SearchSpaceSource:
    """Return whether the paper's own search space for a workload is known, or the spec's is our choice."""
    return "published" if name in _PUBLISHED else "ours"


def check_name(source: str, name: str) -> None:
    """Raise SpecError unless `name` is one of the paper's; `source` says whether it or its sibling was asked for."""
    if name not in paper_names():
        raise SpecError(unknown_name(f"{source} workload", name, paper_names()))


def split_name(name: str) -> tuple[str, str, str]:
    """Return dataset, model and optimizer of an archive name; the dataset without the group it may be in.

    >>> split_name("solution_quality/mnist/simple_cnn_base/nesterov_momentum")
    ('mnist', 'simple_cnn_base', 'nesterov_momentum')
    """
    *_, dataset, model, optimizer = name.split("/")
    return dataset, model, optimizer


def _family(name: str) -> Family:
    return next(family for start, family in _FAMILIES.items() if name.startswith(start))


def _workload(name: str) -> dict[str, Any]:
    dataset, model, optimizer = split_name(name)
    workload = {
        "dataset": _dataset(dataset),
        "model": model,
        "optimizer": optimizer,
        "schedule": _schedule(_family(name)),
    }
    return workload if f"{dataset}/{model}/{optimizer}" == name else {**workload, "alias": name}


def _dataset(name: str) -> str | dict[str, Any]:
    subset = re.fullmatch(r"mnist_(\d+)", name)
    if subset:
        return {"name": "mnist", "train_examples": int(subset[1]), **_SCALING}
    return {"name": name, **_SCALING} if name in ("mnist", "fashion_mnist") else name


def _schedule(family: Family) -> str | dict[str, Any]:
    if family.end_factor is None:
        return "constant"
    if family.end_factor == "tuned":
        return "linear_decay"
    return {"name": "linear_decay", "end_learning_rate_factor": family.end_factor}


def _plan(name: str) -> dict[str, Any]:
    family = _family(name)
    limits = {"max_steps": family.max_steps, "max_examples": family.max_examples}
    return {
        "batch_sizes": _batch_sizes(name),
        "trials": paper_trials(name),
        **{key: value for key, value in limits.items() if value is not None},
        "goal": str(paper_goal(name)),
        "protocol": "full",
        "max_attempts": MAX_ATTEMPTS,
        "evaluate": {**family.evaluate, "splits": _ALL_SPLITS},
    }


def _batch_sizes(name: str) -> list[int]:
    return [study.batch_size for study in inventory() if study.workload == name]


def _search_space(name: str) -> dict[str, Any]:
    family, is_plain = _family(name), name.endswith("/sgd")
    low, high = (10 * end if is_plain else end for end in family.learning_rate)
    space: dict[str, Any] = {"learning_rate": {"min": low, "max": high, "scale": "log"}}
    if not is_plain:
        space["momentum"] = {"min": family.momentum[0], "max": family.momentum[1], "scale": "reverse_log"}
    if family.end_factor == "tuned":
        space["end_learning_rate_factor"] = {"min": 1e-4, "max": 0.1, "scale": "log"}
    if family.end_factor is not None:
        space["learning_rate_decay_steps"] = decay_steps(family.max_steps)
    if family.label_smoothing:
        space["label_smoothing"] = {"values": list(family.label_smoothing)}
    return space


def _at(name: str) -> dict[str, Any]:
    """Return the length of training and of its decay for each batch size."""
    return {
        str(batch_size): {
            "max_steps": max_steps,
            "search_space": {"learning_rate_decay_steps": decay_steps(max_steps)},
        }
        for batch_size, max_steps in lengths(name).items()
        if batch_size in _batch_sizes(name)
    }


def decay_steps(max_steps: int) -> dict[str, Any]:
    """Return the range of the decay's length: half of the training to all of it, as in the one published study."""
    return {"min": max_steps // 2, "max": max_steps, "type": "integer"}
