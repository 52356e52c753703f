"""Steps to the goal at every batch size, and the metaparameters that it took."""

from __future__ import annotations

from batchlab.plots import metaparameters_data, metaparameters_figure
from batchlab.report.blocks import Paragraph, Picture, Section
from batchlab.report.findings import Findings
from batchlab.report.pictures import make_picture
from batchlab.report.tables import parts_of, steps_table

_CAPTION = (
    "The best metaparameters, and bars over those of the trials that came close. The rules start from the value "
    "at the smallest batch size; hollow points lie at the edge of what was tried, so a better value may lie beyond."
)


def steps_section(findings: Findings, anchor: str) -> Section:
    """Return the tables of steps, of trials and of best metaparameters, which are drawn too where there are any."""
    summary = findings.summary
    answers, *others = parts_of(steps_table(summary, findings.published))
    compared = (Paragraph(findings.published.sentence),) if findings.published else ()
    return Section("Steps to the goal", (answers, *compared, *others, *_tuning(findings, anchor)))


def _tuning(findings: Findings, anchor: str) -> tuple[Picture, ...]:
    data = metaparameters_data(findings.summary)
    if not data.panels:
        return ()
    label = f"Best metaparameters against batch size for {findings.summary.workload}"
    return (make_picture(metaparameters_figure(data), data.panels, f"{anchor}-tuning", label, _CAPTION),)
