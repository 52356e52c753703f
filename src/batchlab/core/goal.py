"""Goal: the only place where a measured value meets a target."""

from __future__ import annotations

import operator
import re
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_serializer, model_validator

from batchlab.core.value import Value
from batchlab.errors import shown

_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_PATTERN = re.compile(r"\s*(?P<metric>[a-z_]+/[a-z_0-9]+)\s*(?P<comparison><=|>=|<|>)\s*(?P<threshold>\S+)\s*")


class Goal(Value):
    """A metric, a comparison and a threshold, written `val/classification_error < 0.03`.

    The comparison is taken as written: `<` is strict. A NaN meets no goal.

    >>> Goal.read("val/classification_error < 0.03").is_met(0.03)
    False
    """

    written: ClassVar[str] = 'text, such as "val/classification_error < 0.03"'

    metric: str
    comparison: Literal["<", "<=", ">", ">="]
    threshold: float

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the goal that `text` writes; ValueError if it writes none."""
        match = _PATTERN.fullmatch(text)
        if match is None:
            raise ValueError(f'"{shown(text)}" is no goal; write one like "val/classification_error < 0.03"')
        written = match["threshold"]
        try:
            threshold = float(written) if written.isascii() and "_" not in written else None
        except ValueError:
            threshold = None
        if threshold is None:
            raise ValueError(f'the threshold "{shown(written)}" of goal "{shown(text)}" is no number{_share(written)}')
        return cls.model_validate({**match.groupdict(), "threshold": threshold})

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        return dict(cls.read(data)) if isinstance(data, str) else data

    @model_serializer
    def _to_text(self) -> str:
        return str(self)

    @property
    def is_lower_better(self) -> bool:
        """True for `<` and `<=`."""
        return self.comparison in ("<", "<=")

    def is_met(self, value: Any) -> Any:
        """Return whether `value` meets the goal; for an array, elementwise."""
        with np.errstate(invalid="ignore"):
            return _COMPARISONS[self.comparison](value, self.threshold)

    def best(self, values: np.ndarray, before: float | None = None) -> float | None:
        """Return the best of some values and one known before, in the goal's direction; None where none is a number.

        >>> Goal.read("val/classification_error < 0.03").best(np.array([0.5, np.nan, 0.2]))
        0.2
        """
        numbers = [float(value) for value in values if not np.isnan(value)] + ([] if before is None else [before])
        return (min if self.is_lower_better else max)(numbers, default=None)

    def is_harder_than(self, other: Goal) -> bool:
        """Return whether meeting this goal implies meeting `other` (same metric and direction)."""
        if self.metric != other.metric or self.is_lower_better != other.is_lower_better:
            return False
        if self.threshold == other.threshold:
            return len(self.comparison) < len(other.comparison)
        return (self.threshold < other.threshold) == self.is_lower_better

    def __str__(self) -> str:
        short = f"{self.threshold:g}"
        threshold = short if float(short) == self.threshold else repr(self.threshold)
        return f"{self.metric} {self.comparison} {threshold}"


def _share(written: str) -> str:
    """Return how a percentage is written as a share; nothing for what is none.

    >>> _share("3%"), _share("low")
    ('; write 0.03', '')
    """
    percent = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)%", written, re.ASCII)
    return f"; write {float(percent[1]) / 100:g}" if percent else ""
