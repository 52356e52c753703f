"""The first section: the goal, the answer in a paragraph, what to know before trusting it, and the curve."""

from __future__ import annotations

from batchlab.plots import steps_curve_data, steps_curve_figure, svg_text
from batchlab.report import words
from batchlab.report.blocks import Paragraph, Picture, Section, Warnings
from batchlab.report.findings import Findings
from batchlab.report.inline_svg import inline_svg

_CAPTION = """Fewest steps to the goal over all complete trials of a batch size, tuned independently at each.
Intervals are 95 %, by the bootstrap over trials; an arrow marks one that is open above because too few trials
reached the goal before training ended. The bar on the axis is the interval of the critical batch size."""


def answer_section(findings: Findings, anchor: str) -> Section:
    """Return the answer with its figure; it has no heading of its own."""
    summary = findings.summary
    goal, answer = Paragraph(f"Goal: {summary.goal}", "goal"), Paragraph(words.answer(summary), "answer")
    warnings = (Warnings(summary.warnings),) if summary.warnings else ()
    return Section("", (goal, answer, *warnings, _curve(findings, anchor)))


def _curve(findings: Findings, anchor: str) -> Picture:
    summary = findings.summary
    svg = svg_text(steps_curve_figure(steps_curve_data(summary)))
    label = f"Steps to {summary.goal} against batch size for {summary.workload}"
    return Picture(inline_svg(svg, f"{anchor}-steps", label), _CAPTION)
