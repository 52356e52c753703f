"""The machine and the packages that trained."""

from __future__ import annotations

from batchlab.report.blocks import Facts, Section
from batchlab.report.findings import Findings
from batchlab.report.words.facts import facts_of


def environment_section(findings: Findings, anchor: str) -> Section | None:
    """Return host, processor and versions; None where they are not known."""
    return Section("Environment", (Facts(facts_of(findings.environment)),)) if findings.environment else None
