"""The spec, as the file that would run the sweep again."""

from __future__ import annotations

from batchlab.report.blocks import Code, Section
from batchlab.report.findings import Findings
from batchlab.report.spec_text import spec_text


def spec_section(findings: Findings, anchor: str) -> Section | None:
    """Return the spec as TOML; None for a sweep without one."""
    return Section("Spec", (Code(spec_text(findings.spec)),)) if findings.spec else None
