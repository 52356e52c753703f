"""What the published batch-science archive holds: its README's table of studies and trials."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from batchlab.core.goal import Goal

TABLE = "batch_science_inventory.csv"


@dataclass(frozen=True)
class InventoryStudy:
    """One row of the table: a study, and how many of its trials ended each way."""

    base_dir: str
    """The path before the model: the dataset, or a group of datasets and the dataset."""

    dataset: str
    model: str
    optimizer: str
    batch_size: int
    complete: int
    incomplete: int
    infeasible: int

    @property
    def workload(self) -> str:
        """The workload's name, which is also its path in the archive: `mnist/fc_1024/sgd`."""
        return f"{self.base_dir}/{self.model}/{self.optimizer}"


@cache
def inventory() -> tuple[InventoryStudy, ...]:
    """Return every study of the published archive, by workload and ascending batch size.

    >>> len(inventory())
    454
    """
    text = resources.files("batchlab.store").joinpath(TABLE).read_text(encoding="utf-8")
    return tuple(_study(row) for row in csv.DictReader(text.splitlines()))


def _study(row: dict[str, str]) -> InventoryStudy:
    return InventoryStudy(
        base_dir=row["base_dir"],
        dataset=row["dataset"],
        model=row["model"],
        optimizer=row["optimizer"],
        batch_size=int(row["batch_size"]),
        complete=int(row["complete"]),
        incomplete=int(row["incomplete"]),
        infeasible=int(row["infeasible"]),
    )


_GOALS = {  # by how a workload's name begins; where figures differ, the goal of Figure 1
    "mnist/fc_": "val/classification_error < 0.03",
    "mnist/simple_cnn_": "val/classification_error < 0.01",
    "mnist_subsets/": "val/classification_error < 0.02",
    "fashion_mnist/": "val/classification_error < 0.1",
    "cifar_10/": "val/classification_error < 0.3",
    "imagenet/resnet_50/": "val/classification_error < 0.25",
    "imagenet/vgg_11/": "val/classification_error < 0.35",
    "imagenet_subsets/": "val/classification_error < 0.3",
    "open_images_v4/": "val/average_precision > 0.31",
    "lm1b/transformer_wide/": "val/cross_entropy_error < 4.2",
    "lm1b/transformer_narrow_and_shallow/": "val/cross_entropy_error < 4.2",
    "lm1b/": "val/cross_entropy_error < 3.9",
    "common_crawl/": "val/cross_entropy_error < 3.9",
    "solution_quality/mnist/": "val/classification_error < 0.01",
    "solution_quality/fashion_mnist/": "val/classification_error < 0.1",
}


def paper_goal(workload: str) -> Goal | None:
    """Return the goal that the paper sets a workload, or None for one that is not the paper's.

    >>> str(paper_goal("cifar_10/resnet_8/sgd"))
    'val/classification_error < 0.3'
    """
    return next((Goal.read(goal) for start, goal in _GOALS.items() if workload.startswith(start)), None)
