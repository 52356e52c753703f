"""Summaries made by hand, changed in one respect."""

from __future__ import annotations

import dataclasses

from batchlab.analysis.curve.regime_end import RegimeEnd
from batchlab.core.protocol import Protocol

RACE = Protocol(kind="race", race_factor=1.5, max_steps=50_000)


EXACT = Protocol(kind="full", max_steps=20_000, is_grid=True, is_closed_form=True)


GOAL = "val/classification_error < 0.03"


def with_fit(summary, **changes):
    return dataclasses.replace(summary, fit=dataclasses.replace(summary.fit, **changes))


def with_regimes(summary, perfect, maximal, **changes):
    changed = {"is_thin": False, "advice": None, "perfect_up_to": RegimeEnd(*perfect), **changes}
    regimes = dataclasses.replace(summary.regimes, maximal_from=RegimeEnd(*maximal), **changed)
    return dataclasses.replace(summary, regimes=regimes)


def with_best(summary, **changes):
    """Return the summary with the answers of its last row changed, so that it has the fewest steps."""
    *rows, last = summary.rows
    return dataclasses.replace(summary, rows=(*rows, dataclasses.replace(last, **changes)))
