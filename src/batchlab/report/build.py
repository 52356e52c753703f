"""The page: findings in, one self-contained HTML file out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from batchlab.errors import InputError
from batchlab.files import write_file
from batchlab.report.blocks import Section
from batchlab.report.findings import Findings
from batchlab.report.render import render, render_blocks
from batchlab.report.sections import SECTIONS
from batchlab.report.tables import best_text
from batchlab.report.words.fit import critical_text
from batchlab.report.words.left_out import left_out_text

TITLE = "Steps to result against batch size"


def build_report(findings: Sequence[Findings], title: str = TITLE, rejected: int = 0) -> str:
    """Return the page as HTML: it loads nothing, runs nothing, and reads on a phone, on paper and in the dark.

    `rejected` is how much imports have left out of the lab that is of none of the workloads told of.
    """
    if not findings:
        raise InputError("There is no workload to report on. Run a sweep first: batchlab run SPEC")
    anchored = [(f"workload-{number}", each) for number, each in enumerate(findings, start=1)]
    return render(
        "report.html",
        title=title,
        left_out=left_out_text(rejected, "other workloads") if rejected else None,
        overview=[_overview(each, anchor) for anchor, each in anchored],
        workloads=[(anchor, each.summary.workload, _sections(each, anchor)) for anchor, each in anchored],
    )


def write_report(path: Path, findings: Sequence[Findings], title: str = TITLE, rejected: int = 0) -> Path:
    """Write the page to `path`, whole or not at all, and return `path`."""
    write_file(path, build_report(findings, title, rejected).encode())
    return path


def _sections(findings: Findings, anchor: str) -> list[tuple[str, Markup]]:
    """Return the title and the body of each section that has something to tell."""
    made: list[Section | None] = [entry.make(findings, anchor) for entry in SECTIONS]
    return [(section.title, render_blocks(section.blocks)) for section in made if section is not None]


def _overview(findings: Findings, anchor: str) -> tuple[str, str, str, str, str]:
    """Return the line of one workload in the table at the top: anchor, name, goal, fewest steps, critical size."""
    summary = findings.summary
    return anchor, summary.workload, str(summary.goal), best_text(summary), critical_text(summary.fit)
