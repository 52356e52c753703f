"""Published curves of steps to result, to lay beside one's own: read off the pictures that the authors' notebook drew.

Figure 1 (nine workloads) carries steps with an error of about 0.5 %. Of Figure 3, two fully connected networks were
read with low confidence, where curves lie over each other; it shows steps relative to those at one batch size. Batch
sizes and goals are exact. Licence of the data: CC BY 4.0.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from batchlab.core.goal import Goal

Confidence = Literal["high", "medium", "low"]
_CONFIDENCES: dict[str, Confidence] = {"high": "high", "medium": "medium", "low": "low"}


@dataclass(frozen=True)
class PublishedPoint:
    """One batch size of a published curve."""

    batch_size: int
    steps: float
    """Relative to those at one batch size where the curve is."""

    confidence: Confidence
    """How well it could be read off the picture."""


@dataclass(frozen=True, kw_only=True)
class PublishedCurve:
    """The published steps of one workload to one goal."""

    workload: str
    goal: Goal
    source: str
    """The paper's figure: `Figure 1`."""

    relative_to: int | None
    """The batch size to whose steps the values are relative; None where they are steps."""

    points: tuple[PublishedPoint, ...]
    """By ascending batch size."""

    @property
    def steps(self) -> dict[int, float]:
        """The values by batch size."""
        return {point.batch_size: point.steps for point in self.points}

    @property
    def confidence(self) -> Confidence:
        """That of its worst point."""
        found = {point.confidence for point in self.points}
        return "low" if "low" in found else "medium" if "medium" in found else "high"


@cache
def published_curves() -> tuple[PublishedCurve, ...]:
    """Return every published curve whose numbers are known.

    >>> [curve.workload for curve in published_curves() if curve.relative_to]
    ['mnist/fc_1024_1024_1024/sgd', 'mnist/fc_256_256_256/sgd']
    """
    return (*_figure_1(), *_figure_3())


def published_curve(workload: str, goal: Goal) -> PublishedCurve | None:
    """Return the published curve of a workload to this very goal, or None where there is none.

    >>> goal = Goal.read("val/classification_error < 0.01")
    >>> published_curve("mnist/simple_cnn_base/nesterov_momentum", goal).steps[55000]
    140.0
    """
    return next((curve for curve in published_curves() if (curve.workload, curve.goal) == (workload, goal)), None)


def published_steps(workload: str, goal: Goal) -> dict[int, float]:
    """Return the published steps by batch size; empty where they are not known, or only relative to each other.

    >>> goal = Goal.read("val/classification_error < 0.03")
    >>> published_steps("mnist/fc_256_256_256/sgd", goal)
    {}
    """
    curve = published_curve(workload, goal)
    return curve.steps if curve and curve.relative_to is None else {}


def _figure_1() -> Iterator[PublishedCurve]:
    found: dict[tuple[str, str], list[PublishedPoint]] = {}
    for row in _rows("figure_1.csv"):
        workload = "/".join((row["dataset"], row["model"], row["optimizer"]))
        sign = ">" if row["goal_metric"] == "val/average_precision" else "<"
        goal = f"{row['goal_metric']} {sign} {row['goal_value']}"
        point = PublishedPoint(int(row["batch_size"]), float(row["steps"]), "high")
        found.setdefault((workload, goal), []).append(point)
    for (workload, goal), points in found.items():
        yield _curve(workload, goal, "Figure 1", None, points)


def _figure_3() -> Iterator[PublishedCurve]:
    found: dict[tuple[str, int], list[PublishedPoint]] = {}
    for row in _rows("figure_3_fully_connected.csv"):
        point = PublishedPoint(int(row["batch_size"]), float(row["value"]), _CONFIDENCES[row["confidence"]])
        found.setdefault((row["workload"], int(row["relative_to"])), []).append(point)
    for (workload, relative_to), points in found.items():
        yield _curve(workload, "val/classification_error < 0.03", "Figure 3", relative_to, points)


def _curve(
    workload: str, goal: str, source: str, relative_to: int | None, points: list[PublishedPoint]
) -> PublishedCurve:
    ordered = tuple(sorted(points, key=lambda point: point.batch_size))
    return PublishedCurve(
        workload=workload, goal=Goal.read(goal), source=source, relative_to=relative_to, points=ordered
    )


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files("batchlab.published").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
