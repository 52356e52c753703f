"""Steps to the goal at every batch size, and the metaparameters that it took."""

from __future__ import annotations

from batchlab.plots import metaparameters_data, metaparameters_figure, svg_text
from batchlab.report.blocks import Picture, Section, Table
from batchlab.report.findings import Findings
from batchlab.report.inline_svg import inline_svg
from batchlab.report.tables import STEPS_HEADER, STEPS_NUMBERS, steps_table

_CAPTION = """Metaparameters of the trial that reached the goal first. The rules start from its value at the smallest
batch size; hollow points lie in the outer 5 % of their search range, so a better value may lie beyond."""


def steps_section(findings: Findings, anchor: str) -> Section:
    """Return the table of steps, and the figure of the best metaparameters where there are any to draw."""
    summary = findings.summary
    table = Table(
        name="steps",
        header=STEPS_HEADER,
        rows=steps_table(summary),
        numbers=STEPS_NUMBERS,
        muted=[place for place, row in enumerate(summary.rows) if not row.is_reached],
    )
    tuning = _tuning(findings, anchor)
    return Section("Steps to the goal", (table, tuning) if tuning else (table,))


def _tuning(findings: Findings, anchor: str) -> Picture | None:
    data = metaparameters_data(findings.summary)
    if not data.panels:
        return None
    label = f"Best metaparameters against batch size for {findings.summary.workload}"
    svg = svg_text(metaparameters_figure(data))
    return Picture(inline_svg(svg, f"{anchor}-tuning", label), _CAPTION)
