"""The verdict: how far each cut lies from the whole batch, and why."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from batchlab.doctor.causes import Cause, Finding, read_causes
from batchlab.doctor.gradient import Comparison
from batchlab.report.text_table import text_table

HEADER = ("Microbatches", "Workers", "Norm ratio", "Relative error", "Cosine", "Worst layer", "Finding")


@dataclass(frozen=True)
class Row:
    """One way to cut the batch."""

    cut: str
    """The sizes of its microbatches, a bar between workers."""

    num_workers: int
    comparison: Comparison | None
    """None where the step cannot be run so."""

    is_equal: bool
    findings: tuple[Finding, ...] = ()
    failure: str | None = None
    """Why the step cannot be run so."""

    @property
    def error(self) -> float:
        """The relative error; infinite where it is no number, and 0 where the step was not run."""
        if self.comparison is None:
            return 0.0
        return self.comparison.relative_error if math.isfinite(self.comparison.relative_error) else math.inf

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Why it differs; empty where it does not, or where nobody knows."""
        return tuple(each.cause for each in self.findings)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        found = self.comparison
        worst = None if found is None else {"name": found.worst_layer, "relative_error": _finite(found.worst_error)}
        return {
            "cut": self.cut,
            "workers": self.num_workers,
            "equal": self.is_equal,
            "norm_ratio": None if found is None else _finite(found.norm_ratio),
            "relative_error": None if found is None else _finite(found.relative_error),
            "cosine": None if found is None else _finite(found.cosine),
            "worst_layer": worst,
            "causes": [str(each) for each in self.causes],
            "failure": self.failure,
        }

    def cells(self) -> list[str]:
        """Return it as a line of a table."""
        if self.comparison is None:
            return [self.cut, f"{self.num_workers}", "", "", "", "", f"not run: {self.failure}"]
        found = self.comparison
        worst = "" if self.is_equal else f"{found.worst_layer} ({found.worst_error:.2g})"
        told = "equal" if self.is_equal else ", ".join(map(str, self.causes)) or "cause not known"
        numbers = [f"{found.norm_ratio:.6f}", f"{found.relative_error:.2g}", f"{found.cosine:.6f}"]
        return [self.cut, f"{self.num_workers}", *numbers, worst, told]


@dataclass(frozen=True)
class Equivalence:
    """Whether a loop gives the gradient of the whole batch however it is cut, and if not, why.

    It prints as a table with the causes and what mends them; `rows` and `findings` hold the same as data.
    """

    num_examples: int
    rows: tuple[Row, ...]
    tolerance: float
    precision: str
    """In which the gradients were computed: float64 wherever the step can be run so."""

    allowed: frozenset[Cause] = frozenset()
    """Causes that are accepted."""

    @property
    def is_equivalent(self) -> bool:
        """Whether every cut that can be run gives the same gradient, or differs by accepted causes alone.

        Of each number of workers at least one has to run.
        """
        return not self._never_run and all(
            row.is_equal or (row.findings and set(row.causes) <= self.allowed) for row in self._run
        )

    @property
    def _never_run(self) -> list[int]:
        """The numbers of workers of which no cut can be run."""
        return sorted({row.num_workers for row in self.rows} - {row.num_workers for row in self._run})

    @property
    def _run(self) -> list[Row]:
        return [row for row in self.rows if not row.failure]

    def allowing(self, causes: Iterable[str]) -> Equivalence:
        """Return the verdict where some more causes are accepted."""
        return replace(self, allowed=self.allowed | read_causes(causes))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Each cause once, with what shows it at the cut with the largest error."""
        return tuple(finding for finding, _ in self._shown_at())

    def _shown_at(self) -> list[tuple[Finding, Row]]:
        """Return each cause once, and the cut that shows it best."""
        found: dict[Cause, tuple[Finding, Row]] = {}
        for row in self.rows:
            for finding in row.findings:
                before = found.get(finding.cause)
                if before is None or row.error > before[1].error:
                    found[finding.cause] = (finding, row)
        return list(found.values())

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The names of the causes."""
        return tuple(each.cause for each in self.findings)

    @property
    def worst(self) -> Row | None:
        """The cut with the largest relative error."""
        return max(self._run, key=lambda row: row.error, default=None)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "equivalent": self.is_equivalent,
            "examples": self.num_examples,
            "precision": self.precision,
            "tolerance": self.tolerance,
            "allowed": sorted(map(str, self.allowed)),
            "rows": [row.plain() for row in self.rows],
            "causes": [
                {"name": str(each.cause), "cut": row.cut, "evidence": each.evidence, "remedy": each.remedy}
                for each, row in self._shown_at()
            ],
        }

    def table(self, width: int | None = None) -> str:
        """Return the cuts as a table of text."""
        return text_table(HEADER, [row.cells() for row in self.rows], width, left=(0, 5, 6), key=None)

    def sentences(self) -> list[str]:
        """Return what was found in words, the verdict first."""
        sentences = [self._headline()]
        for each, row in self._shown_at():
            accepted = " (accepted)" if each.cause in self.allowed else ""
            sentences.append(f"Cause: {each.cause}{accepted}. At {row.cut}: {each.evidence}.")
            sentences.append(f"  To mend it: {each.remedy}.")
        if any(not row.is_equal and not row.findings for row in self._run):
            sentences.append(
                "A cause is not known: no single experiment makes the difference go away. Try a smaller step: one "
                "loss, one backward pass for each microbatch, nothing after it."
            )
        return sentences

    def _headline(self) -> str:
        run, different = self._run, [row for row in self._run if not row.is_equal]
        basis = f"({self.precision}, tolerance {self.tolerance:.0e} of the gradient's norm)"
        batch = f"{self.num_examples:,} example{'s' if self.num_examples != 1 else ''}"
        if not run:
            return f"NOT known: the step could not be run in any of {_ways(len(self.rows))} to cut a batch of {batch}."
        if not different and self._never_run:
            workers = " and ".join(map(str, self._never_run))
            return f"NOT known: the step cannot be run on {workers} workers; on others its gradient is right {basis}."
        if not different:
            give = "gives" if len(run) == 1 else "give"
            return f"Equivalent: {_ways(len(run))} to cut a batch of {batch} {give} the gradient of the whole {basis}."
        verdict = "Equivalent but for what was accepted" if self.is_equivalent else "NOT equivalent"
        ways, give = f"{len(different)} of {_ways(len(run))}", "gives" if len(different) == 1 else "give"
        return f"{verdict}: {ways} to cut a batch of {batch} {give} another gradient {basis}."

    def __str__(self) -> str:
        first, *others = self.sentences()
        return "\n".join([first, self.table(), *others])


def _finite(value: float) -> float | None:
    """Return a number as JSON has it."""
    return value if math.isfinite(value) else None


def _ways(number: int) -> str:
    return "1 way" if number == 1 else f"{number} ways"
