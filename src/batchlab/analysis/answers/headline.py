"""The headline: which of the three named answers of a batch size stands first.

`confirmed` is the median steps of a stated configuration over fresh seeds, `best_of` the median of the minimum of m
trials, `minimum` the paper's: the fewest steps over all trials, a number without an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from batchlab.analysis.interval import Interval

if TYPE_CHECKING:
    from batchlab.analysis.answers.steps_to_result import StepsToResult

Headline = Literal["confirmed", "best_of", "minimum"]

IN_WORDS: dict[Headline, str] = {"confirmed": "confirmed medians", "best_of": "best of m", "minimum": "minima"}
"""What the answers of several batch sizes are called together."""


@dataclass(frozen=True)
class Estimate:
    """One named answer of a batch size."""

    value: float | None
    """None where the goal was not met, or where there is no such answer."""

    interval: Interval | None
    """None where the answer has none by nature, as the minimum."""

    earliest: float | None = None
    """The earliest step at which the goal may have been met, see `gap.earliest_step`; None: at `value` itself."""

    @property
    def earliest_step(self) -> float:
        """The earliest step at which the goal may have been met."""
        assert self.value is not None
        return self.value if self.earliest is None else self.earliest

    @property
    def middle(self) -> float:
        """The middle of the steps at which the goal may have been met: what curves are fitted to."""
        assert self.value is not None
        return (self.earliest_step + self.value) / 2

    @property
    def is_exact(self) -> bool:
        """Whether there was an evaluation one step before."""
        return self.value is not None and self.earliest_step == self.value


def choose_headline(rows: Sequence[StepsToResult]) -> Headline:
    """Return the best answer that every batch size that met the goal can give.

    One curve needs one estimand: a single batch size without a confirmed answer makes the whole curve fall back. The
    published data keep the paper's own statistic, the minimum.

    >>> from batchlab.analysis import example_workload, steps_to_result
    >>> from batchlab.core.goal import Goal
    >>> goal = Goal.read("val/classification_error < 0.1")
    >>> choose_headline([steps_to_result(study, goal) for study in example_workload()])
    'minimum'
    """
    reached = [row for row in rows if row.is_reached]
    names: tuple[Headline, ...] = ("confirmed", "best_of")
    for headline in names:
        if reached and all(_can_give(row, headline) for row in reached):
            return headline
    return "minimum"


def _can_give(row: StepsToResult, headline: Headline) -> bool:
    return row.protocol.kind != "imported" and row.estimate(headline).value is not None
