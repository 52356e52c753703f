"""What a loop tells of itself: a step and what was measured there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

from batchlab.core.limits import MOST_STEPS
from batchlab.errors import TrainerError, shown

LONGEST_NAME = 100
MOST_METRICS = 200
_COLUMNS = ("step", "examples", "trial_id", "replicate", "sweep", "batch_size")
"""Names that a table of measurements has already."""

Patterns = Mapping[str, re.Pattern[str]]
"""How a line is read, by metric, and `step`: each has one group, which is the number."""


@dataclass(frozen=True)
class Report:
    """One thing that a loop has told."""

    step: int
    metrics: Mapping[str, float]
    offset: int = 0
    """How much of the loop's output had been read after it, in bytes."""

    examples: int | None = None
    """Seen so far, repeats counted, where the loop tells it."""


def make_report(step: Any, metrics: Any, offset: int = 0) -> Report:
    """Return a report; TrainerError where its step is no step, or a metric no number. What is None was not measured."""
    step = _count("step", step, "updates")
    if not isinstance(metrics, Mapping):
        raise TrainerError(f'{shown(metrics)} at step {step}: report a table of metrics, such as {{"val/loss": 0.3}}.')
    if len(metrics) > MOST_METRICS:
        raise TrainerError(f"{len(metrics):,} metrics at step {step} are more than {MOST_METRICS}.")
    measured = {name: value for name, value in metrics.items() if value is not None}
    counted = measured.pop("examples", None)
    examples = None if counted is None else _count("examples", counted, "examples")
    return Report(step, {_name(name): _number(name, value, step) for name, value in measured.items()}, offset, examples)


def _count(name: str, value: Any, things: str) -> int:
    try:
        count = int(value) if isinstance(value, float) and value.is_integer() else index(value)
        if isinstance(value, bool) or not 0 <= count <= MOST_STEPS:
            raise TypeError
    except TypeError:
        told = f"{name} = {shown(value)} is no whole number from 0: report the number of {things} so far."
        raise TrainerError(told) from None
    return count


def read_json_line(line: str) -> tuple[Any, dict[str, Any]] | None:
    """Return step and numbers of a line that is a JSON table with a `step`; None for every other line.

    What else is in it is left out, but for what goes by the name of a metric of a split: that must be a number.

    >>> read_json_line('{"step": 5, "val/loss": 0.3, "note": "warm"}'), read_json_line("epoch 3 begins")
    ((5, {'val/loss': 0.3}), None)
    """
    if "\r" in line:  # a progress bar, behind which a report may stand in the same line
        line = line[line.find("{", line.rindex("\r")) :]
    if not line.lstrip().startswith("{"):
        return None
    try:
        table = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(table, dict) or "step" not in table:
        return None
    step = table.pop("step")
    return step, {name: value for name, value in table.items() if _is_number(value) or _is_measured(name)}


def _is_measured(name: str) -> bool:
    return name.startswith(("train/", "val/", "test/"))


def read_by_pattern(line: str, patterns: Patterns) -> tuple[Any, dict[str, Any]] | None:
    """Return step and numbers of a line in which the step's pattern is found, and that of a metric; else None.

    >>> read_by_pattern("it 5: loss 0.25", {"step": re.compile("it ([0-9]+)"), "val/loss": re.compile("loss (.*)")})
    (5, {'val/loss': 0.25})
    """
    found = {name: match[1] for name, pattern in patterns.items() if (match := pattern.search(line)) and match[1]}
    if "step" not in found or len(found) == 1:
        return None
    numbers = {name: _parsed(name, text) for name, text in found.items()}
    return numbers.pop("step"), numbers


def _parsed(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise TrainerError(f"pattern.{shown(name)} has found {shown(text)}, which is no number.") from None
    return int(number) if name == "step" and number.is_integer() else number


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name(name: Any) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name in _COLUMNS:
        raise TrainerError(f"A metric cannot be called {shown(name)}: call it such as val/loss.")
    return name


def _number(name: Any, value: Any, step: int) -> float:
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TrainerError(f"{shown(name)} = {shown(value)} at step {step} is no number.") from None
