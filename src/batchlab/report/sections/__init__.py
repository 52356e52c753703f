"""The sections of a report, one file each: findings in, a section out, None where there is nothing to tell."""

from __future__ import annotations

from collections.abc import Callable

from batchlab.report.blocks import Section
from batchlab.report.findings import Findings
from batchlab.report.sections.answer import answer_section
from batchlab.report.sections.environment import environment_section
from batchlab.report.sections.fit import fit_section
from batchlab.report.sections.regimes import regimes_section
from batchlab.report.sections.spec import spec_section
from batchlab.report.sections.steps import steps_section
from batchlab.report.sections.training import training_section

SECTIONS: tuple[Callable[[Findings, str], Section | None], ...] = (
    answer_section,
    steps_section,
    regimes_section,
    fit_section,
    training_section,
    spec_section,
    environment_section,
)
"""In the order of the page. Each is also told its workload's anchor, so that names in figures stay apart."""
