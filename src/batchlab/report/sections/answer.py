"""The first section: the goal, the answer in a paragraph, what to know before trusting it, and the curve."""

from __future__ import annotations

from batchlab.analysis.answers.headline import Headline
from batchlab.analysis.interval import NO_INTERVAL
from batchlab.plots import steps_curve_data, steps_curve_figure
from batchlab.report.blocks import Paragraph, Picture, Section, Warnings
from batchlab.report.findings import Findings
from batchlab.report.pictures import make_picture
from batchlab.report.words.answer import answer_text
from batchlab.report.words.left_out import left_out_text
from batchlab.report.words.protocol import protocol_text

_CAPTIONS: dict[Headline, str] = {
    "confirmed": "Confirmed steps: the best points of each batch size were trained again with fresh seeds, and this is "
    "the median of the best of them, with its 95 % interval by order statistics.",
    "best_of": "Best of m: the median of the fewest steps of m trials, with its 95 % interval by order statistics; it "
    "is open above where too few trials reached the goal before training ended.",
    "minimum": "The fewest steps over all complete trials of a batch size: a minimum has no interval.",
}
_EVERYWHERE = "Every batch size was tuned by itself."
_BAR = "The bar on the axis is the 95 % interval of the critical batch size."


def answer_section(findings: Findings, anchor: str) -> Section:
    """Return the answer with its figure; it has no heading of its own."""
    summary = findings.summary
    goal, answer = Paragraph(f"Goal: {summary.goal}", "goal"), Paragraph(answer_text(summary), "answer")
    told = [*summary.warnings, *([left_out_text(findings.rejected)] if findings.rejected else [])]
    warnings = (Warnings(tuple(told)),) if told else ()
    protocol = Paragraph(protocol_text(summary), "protocol")
    return Section("", (goal, answer, protocol, *warnings, _curve(findings, anchor)))


def _curve(findings: Findings, anchor: str) -> Picture:
    summary = findings.summary
    data = steps_curve_data(summary, published=findings.published is not None)
    label = f"Steps to {summary.goal} against batch size for {summary.workload}"
    has_bar = summary.fit is not None and summary.fit.b_crit_ci != NO_INTERVAL
    caption = " ".join([_CAPTIONS[summary.headline], _EVERYWHERE, *([_BAR] if has_bar else [])])
    return make_picture(steps_curve_figure(data), [data.panel], f"{anchor}-steps", label, caption)
