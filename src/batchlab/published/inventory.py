"""What the published batch-science archive holds: its README's table of studies and trials."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

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
    text = resources.files("batchlab.published").joinpath(TABLE).read_text(encoding="utf-8")
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
