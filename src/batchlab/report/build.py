"""The page: findings in, one self-contained HTML file out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from batchlab.analysis.text import estimate
from batchlab.errors import InputError
from batchlab.files import write_file
from batchlab.report.blocks import Section
from batchlab.report.findings import Findings
from batchlab.report.sections import SECTIONS

TITLE = "Steps to result against batch size"


def build_report(findings: Sequence[Findings], title: str = TITLE) -> str:
    """Return the page as HTML: it loads nothing, runs nothing, and reads on a phone, on paper and in the dark."""
    if not findings:
        raise InputError("There is no workload to report on. Run a sweep first: batchlab run SPEC")
    environment = Environment(
        loader=PackageLoader("batchlab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    anchors = [f"workload-{number}" for number in range(1, len(findings) + 1)]
    return environment.get_template("report.html").render(
        title=title,
        overview=[_overview(each, anchor) for each, anchor in zip(findings, anchors, strict=True)],
        workloads=[
            (anchor, each.summary.workload, _sections(each, anchor))
            for each, anchor in zip(findings, anchors, strict=True)
        ],
    )


def write_report(path: Path, findings: Sequence[Findings], title: str = TITLE) -> Path:
    """Write the page to `path`, whole or not at all, and return `path`."""
    write_file(path, build_report(findings, title).encode())
    return path


def _sections(findings: Findings, anchor: str) -> list[Section]:
    made = (make(findings, anchor) for make in SECTIONS)
    return [section for section in made if section is not None]


def _overview(findings: Findings, anchor: str) -> tuple[str, str, str, str]:
    """Return the line of one workload in the table at the top: its anchor, name, goal and critical batch size."""
    summary = findings.summary
    critical = estimate(summary.fit.b_crit, *summary.fit.b_crit_ci) if summary.fit else "no fit"
    return anchor, summary.workload, str(summary.goal), critical
