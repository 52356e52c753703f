"""The page: sections in, one self-contained HTML file out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from batchlab.analysis import WorkloadSummary
from batchlab.analysis.text import estimate
from batchlab.errors import InputError
from batchlab.files import write_file
from batchlab.plots import metaparameters_data, metaparameters_figure, steps_curve_data, steps_curve_figure, svg_text
from batchlab.report import words
from batchlab.report.inline_svg import inline_svg
from batchlab.report.spec_text import spec_text
from batchlab.report.tables import STEPS_HEADER, steps_table


@dataclass(frozen=True, kw_only=True)
class ReportSection:
    """One workload of a report. What is left empty is left out of the page."""

    summary: WorkloadSummary
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The resolved spec of its sweep."""

    environment: Mapping[str, Any] = field(default_factory=dict)
    """Host, processor, package versions, times: any names, nested as you like."""

    protocol: Mapping[str, Any] = field(default_factory=dict)
    """How it was run. `trained_steps` and `full_steps` tell what the race saved; other names are listed."""


def build_report(sections: Sequence[ReportSection], title: str = "Steps to result against batch size") -> str:
    """Return the page as HTML: it loads nothing, runs nothing, and reads on a phone, on paper and in the dark."""
    if not sections:
        raise InputError("There is no workload to report on. Run a sweep first: batchlab run SPEC")
    environment = Environment(
        loader=PackageLoader("batchlab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    views = [_view(section, f"workload-{number}") for number, section in enumerate(sections, start=1)]
    return environment.get_template("report.html").render(title=title, sections=views, header=STEPS_HEADER)


def write_report(
    path: Path, sections: Sequence[ReportSection], title: str = "Steps to result against batch size"
) -> Path:
    """Write the page to `path`, whole or not at all, and return `path`."""
    write_file(path, build_report(sections, title).encode())
    return path


def _view(section: ReportSection, anchor: str) -> dict[str, Any]:
    """Return what the template shows of one section, all numbers as text."""
    summary = section.summary
    known = {"trained_steps", "full_steps"}
    return {
        "anchor": anchor,
        "workload": summary.workload,
        "goal": str(summary.goal),
        "answer": words.answer(summary),
        "critical": estimate(summary.fit.b_crit, *summary.fit.b_crit_ci) if summary.fit else "no fit",
        "warnings": summary.warnings,
        "steps_figure": _steps_figure(summary, anchor),
        "rows": steps_table(summary),
        "unreached": [not row.is_reached for row in summary.rows],
        "tuning_figure": _tuning_figure(summary, anchor),
        "fit": words.fit_facts(summary.fit) if summary.fit else [],
        "residuals": _residuals(summary),
        "sensitivity": words.sensitivity(summary),
        "cost": words.training_cost(section.protocol),
        "protocol": words.facts({name: value for name, value in section.protocol.items() if name not in known}),
        "spec": spec_text(section.spec),
        "environment": words.facts(section.environment),
    }


def _steps_figure(summary: WorkloadSummary, anchor: str) -> Markup:
    svg = svg_text(steps_curve_figure(steps_curve_data(summary)))
    return inline_svg(svg, f"{anchor}-steps", f"Steps to {summary.goal} against batch size for {summary.workload}")


def _tuning_figure(summary: WorkloadSummary, anchor: str) -> Markup | None:
    data = metaparameters_data(summary)
    if not data.panels:
        return None
    label = f"Best metaparameters against batch size for {summary.workload}"
    return inline_svg(svg_text(metaparameters_figure(data)), f"{anchor}-tuning", label)


def _residuals(summary: WorkloadSummary) -> list[tuple[str, str]]:
    if summary.fit is None:
        return []
    pairs = zip(summary.fit.batch_sizes, summary.fit.residuals, strict=True)
    return [(f"{batch_size:,}", f"{100 * residual:+.1f} %") for batch_size, residual in pairs]
