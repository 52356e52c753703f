"""The sections of a report, one file each: findings in, a section out, None where there is nothing to tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from batchlab.errors import InputError, shown
from batchlab.report.blocks import Section
from batchlab.report.findings import Findings
from batchlab.report.sections.answer import answer_section
from batchlab.report.sections.environment import environment_section
from batchlab.report.sections.fit import fit_section
from batchlab.report.sections.plan import plan_section
from batchlab.report.sections.regimes import regimes_section
from batchlab.report.sections.spec import spec_section
from batchlab.report.sections.steps import steps_section
from batchlab.report.sections.training import training_section


@dataclass(frozen=True)
class SectionEntry:
    """A section of the report. It is also told its workload's anchor, so that names in figures stay apart."""

    name: str
    make: Callable[[Findings, str], Section | None]


SECTIONS = [
    SectionEntry("answer", answer_section),
    SectionEntry("steps", steps_section),
    SectionEntry("regimes", regimes_section),
    SectionEntry("fit", fit_section),
    SectionEntry("plan", plan_section),
    SectionEntry("training", training_section),
    SectionEntry("spec", spec_section),
    SectionEntry("environment", environment_section),
]
"""In the order of the page; those from outside come last."""


def register(entry: SectionEntry) -> None:
    """Add a section from outside; InputError where its name is taken by another."""
    known = {section.name: section for section in SECTIONS}
    if known.get(entry.name, entry) != entry:
        raise InputError(f"There is already a section {shown(entry.name)}: give yours another name.")
    if entry.name not in known:
        SECTIONS.append(entry)
