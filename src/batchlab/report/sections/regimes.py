"""Where scaling is perfect and where it ends."""

from __future__ import annotations

from batchlab.report import words
from batchlab.report.blocks import Facts, Section
from batchlab.report.findings import Findings


def regimes_section(findings: Findings, anchor: str) -> Section:
    """Return both ends of the regimes, by their thresholds."""
    return Section("Regimes", (Facts(words.sensitivity(findings.summary)),))
