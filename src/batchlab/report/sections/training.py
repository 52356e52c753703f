"""How it was trained and what that took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batchlab.analysis.text import listed
from batchlab.report.blocks import Facts, Paragraph, Section
from batchlab.report.findings import Findings
from batchlab.report.words.facts import facts_of
from batchlab.report.words.training import training_cost

_TOLD = {"trained_steps", "full_steps", "confirming_steps"}
_TERMS = {
    "protocol": "Protocol",
    "core_seconds_of_search": "Search, seconds of one core",
    "core_seconds_of_confirming": "Confirming, seconds of one core",
    "pack_sizes": "Trials trained together",
}


def training_section(findings: Findings, anchor: str) -> Section | None:
    """Return the cost in a sentence and the protocol; None where nothing is known of either."""
    cost = training_cost(findings.protocol)
    facts = facts_of(_in_words(findings.protocol))
    blocks = (*((Paragraph(cost),) if cost else ()), *((Facts(facts),) if facts else ()))
    return Section("Training", blocks) if blocks else None


def _in_words(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the sentence does not tell, under names for a reader."""
    told = {_TERMS.get(name, name): value for name, value in protocol.items() if name not in _TOLD}
    if sizes := protocol.get("pack_sizes"):
        told[_TERMS["pack_sizes"]] = _packs(sizes)
    return told


def _packs(sizes: Mapping[str, int | None]) -> str:
    """Return the pack sizes in a line, each with its batch sizes.

    >>> _packs({"1": 32, "2": 32, "1024": 4, "2048": None})
    '32 at batch size 1 and 2; 4 at batch size 1,024; not known at batch size 2,048'
    """
    found: dict[int | None, list[int]] = {}
    for batch_size, size in sizes.items():
        found.setdefault(size, []).append(int(batch_size))
    return "; ".join(f"{size or 'not known'} at batch size {listed(each)}" for size, each in found.items())
