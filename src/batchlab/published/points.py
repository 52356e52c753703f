"""The published points of Figure 1, to lay over one's own."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from batchlab.core.goal import Goal

LABEL = "published (read off the picture)"


@cache
def published_steps(workload: str, goal: Goal) -> dict[int, float]:
    """Return the published steps by batch size; empty where that workload and goal are not in Figure 1.

    They were read off the picture that the authors' notebook drew from their data (Shallue et al., "Measuring the
    Effects of Data Parallelism on Neural Network Training", 2019), with an error of about 0.5 %; batch sizes and
    goals are exact. Licence of the data: CC BY 4.0.

    >>> goal = Goal.read("val/classification_error < 0.01")
    >>> published_steps("mnist/simple_cnn_base/nesterov_momentum", goal)[55000]
    140.0
    """
    return {
        int(row["batch_size"]): float(row["steps"])
        for row in _rows()
        if "/".join((row["dataset"], row["model"], row["optimizer"])) == workload
        and (row["goal_metric"], float(row["goal_value"])) == (goal.metric, goal.threshold)
    }


@cache
def _rows() -> tuple[dict[str, str], ...]:
    with Path(__file__).with_name("figure_1.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(line for line in file if not line.startswith("#")))
