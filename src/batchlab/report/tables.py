"""Numbers as text: the cells of every table, the same on the command line and in the report."""

from __future__ import annotations

import math
from collections.abc import Mapping

from batchlab.analysis import StepsToResult, WorkloadSummary
from batchlab.analysis.text import count, significant

STEPS_HEADER = (
    "Batch size",
    "Steps",
    "95 % interval",
    "Efficiency",
    "Regime",
    "Best metaparameters",
    "Complete",
    "Infeasible",
    "Incomplete",
    "At the edge",
)
STEPS_NUMBERS = (0, 1, 3, 6, 7, 8)
"""Its columns of numbers."""


def steps_table(summary: WorkloadSummary) -> list[tuple[str, ...]]:
    """Return the cells under `STEPS_HEADER`, one row for each batch size; what does not apply is empty."""
    scaling = summary.scaling
    return [
        (
            count(row.batch_size),
            format_steps(row),
            format_interval(row),
            format_share(efficiency),
            regime or "",
            format_metaparameters(row.trial.metaparameters) if row.trial else "",
            count(row.complete),
            count(row.infeasible),
            count(row.incomplete),
            ", ".join(row.at_boundary),
        )
        for row, efficiency, regime in zip(summary.rows, scaling.efficiencies, scaling.regimes, strict=True)
    ]


def format_steps(row: StepsToResult) -> str:
    """Return `1,234`, or `not reached within 20,000 steps`."""
    return f"not reached within {count(row.end_step)} steps" if row.steps is None else count(row.steps)


def format_interval(row: StepsToResult) -> str:
    """Return `1,234 to 1,390`; `1,234 to > 1,851` where the upper bound lies beyond training; else nothing."""
    if row.interval is None:
        return ""
    high = f"> {count(row.end_step)}" if row.interval.high is None else count(row.interval.high)
    return f"{count(row.interval.low)} to {high}"


def format_share(share: float | None) -> str:
    """Return a share in per cent; nothing for None.

    >>> format_share(0.8333)
    '83 %'
    """
    return "" if share is None else f"{100 * share:.0f} %"


def format_metaparameters(metaparameters: Mapping[str, float]) -> str:
    """Return names with values to three digits; close below 1, the digits that tell it from 1.

    >>> format_metaparameters({"learning_rate": 0.029512, "momentum": 0.999531})
    'learning_rate 0.0295, momentum 0.999531'
    """
    return ", ".join(f"{name} {_format_value(value)}" for name, value in metaparameters.items())


def _format_value(value: float) -> str:
    if not 0.9 < value < 1:
        return significant(value)
    decimals = 2 - math.floor(math.log10(1 - value))
    return f"{value:.{decimals}f}".rstrip("0")
