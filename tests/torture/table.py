"""The table of a run: cases, clean and failed of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """What became of one case."""

    kind: str
    number: int
    what: str
    problems: tuple[str, ...]
    seconds: float


def table(outcomes: Sequence[Outcome], seconds: float) -> str:
    """Return the table and a closing line.

    >>> print(table([Outcome("damage", 0, "a bit", (), 0.1), Outcome("kills", 0, "a kill", ("lost",), 2.0)], 2.1))
    kind     cases  clean  failed  seconds a case
    damage       1      1       0            0.10
    kills        1      0       1            2.00
    all          2      1       1            1.05
    1 of 2 cases failed, in 2 seconds.
    """
    kinds = list(dict.fromkeys(outcome.kind for outcome in outcomes))
    width = max(len("kind"), *(len(kind) for kind in [*kinds, "all"])) + 2
    lines = [f"{'kind':<{width}} cases  clean  failed  seconds a case"]
    lines += [_line(kind, width, [each for each in outcomes if kind in (each.kind, "all")]) for kind in [*kinds, "all"]]
    failed = sum(bool(outcome.problems) for outcome in outcomes)
    verdict = f"{failed:,} of {len(outcomes):,} cases failed" if failed else f"All {len(outcomes):,} cases are clean"
    return "\n".join([*lines, f"{verdict}, in {seconds:,.0f} seconds."])


def _line(kind: str, width: int, outcomes: Sequence[Outcome]) -> str:
    failed = sum(bool(outcome.problems) for outcome in outcomes)
    mean = sum(outcome.seconds for outcome in outcomes) / max(1, len(outcomes))
    return f"{kind:<{width}}{len(outcomes):>6,}{len(outcomes) - failed:>7,}{failed:>8,}{mean:>16.2f}"
