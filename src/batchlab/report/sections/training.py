"""How it was trained and what that took."""

from __future__ import annotations

from batchlab.report.blocks import Facts, Paragraph, Section
from batchlab.report.findings import Findings
from batchlab.report.words.facts import facts_of
from batchlab.report.words.training import training_cost

_TOLD = {"trained_steps", "full_steps", "confirming_steps"}


def training_section(findings: Findings, anchor: str) -> Section | None:
    """Return the cost in a sentence and the protocol; None where nothing is known of either."""
    cost = training_cost(findings.protocol)
    facts = facts_of({name: value for name, value in findings.protocol.items() if name not in _TOLD})
    blocks = (*((Paragraph(cost),) if cost else ()), *((Facts(facts),) if facts else ()))
    return Section("Training", blocks) if blocks else None
