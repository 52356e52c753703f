"""Where scaling is perfect and from where a larger batch size saves little."""

from __future__ import annotations

from batchlab.report.blocks import Facts, Paragraph, Section
from batchlab.report.findings import Findings
from batchlab.report.words.regimes import regime_facts


def regimes_section(findings: Findings, anchor: str) -> Section | None:
    """Return both ends of the regimes with their ranges, or what would tell; None where no curve can be drawn."""
    summary = findings.summary
    if summary.regimes is None:
        return None
    advice = (Paragraph(summary.regimes.advice),) if summary.regimes.advice else ()
    return Section("Regimes", (*advice, Facts(regime_facts(summary))))
