"""The regimes as parts of the batch size axis, with a hatched part wherever a range leaves them open."""

from __future__ import annotations

import math
from itertools import groupby, pairwise

import batchlab.plots.style as style
from batchlab.analysis.curve.regimes import Regime, Regimes
from batchlab.analysis.text import bounds, significant
from batchlab.plots.panel import Span

_COLOURS: dict[Regime, str] = {"perfect": style.GREEN, "diminishing": style.ORANGE, "maximal": style.PURPLE}
_NAMES: dict[Regime, str] = {
    "perfect": "perfect\nscaling",
    "diminishing": "diminishing\nreturns",
    "maximal": "maximal\nparallelism",
}


def regime_spans(regimes: Regimes | None, low: float, high: float) -> tuple[Span, ...]:
    """Return the parts of the axis from `low` to `high`; one without a colour where no regime is known."""
    if regimes is None:
        return ()
    ends = [regimes.perfect_up_to, regimes.maximal_from]
    known = {bound for end in ends for bound in (end.low, end.value, end.high) if bound and low < bound < high}
    edges = sorted({low, high, *known})
    parts = [(regimes.regime_of(math.sqrt(left * right)), left, right) for left, right in pairwise(edges)]
    if all(regime is None for regime, _, _ in parts):
        return (unknown_span(low, high),)
    spans = []
    for regime, run in groupby(parts, key=lambda part: part[0]):
        same = list(run)
        spans.append(_span(regimes, regime, same[0][1], same[-1][2]))
    return tuple(spans)


def unknown_span(low: float, high: float) -> Span:
    """Return the whole axis as one part of which no regime is known."""
    return Span(("regimes are not known from these data", "regimes not known"), "none", low, high)


def _span(regimes: Regimes, regime: Regime | None, left: float, right: float) -> Span:
    if regime is None:
        return Span(("regime\nnot known",), None, left, right)
    return Span((*_with_numbers(regimes, regime), _NAMES[regime]), _COLOURS[regime], left, right)


def _with_numbers(regimes: Regimes, regime: Regime) -> list[str]:
    """Return the regime's name with the batch size at which it ends or begins and its range, where that is firm."""
    if regime == "diminishing":
        return []
    end, words = (regimes.perfect_up_to, "up to") if regime == "perfect" else (regimes.maximal_from, "from")
    if end.value is None or not (end.is_firm or regimes.is_exact):
        return []
    span = "" if end.low is None or end.high is None else f" ({bounds(end.low, end.high)})"
    return [f"{_NAMES[regime].replace(chr(10), ' ')}\n{words} {significant(end.value)}{span}"]
