"""Time and cost to the goal, where step times were measured."""

from __future__ import annotations

from dataclasses import replace

from batchlab.plots import plan_data, plan_figure
from batchlab.report.blocks import Facts, Paragraph, Section, Warnings
from batchlab.report.findings import Findings
from batchlab.report.pictures import make_picture
from batchlab.report.words.plan import plan_answer, plan_table
from batchlab.report.words.throughput import throughput_facts, throughput_notes


def plan_section(findings: Findings, anchor: str) -> Section | None:
    """Return what to train with and what it takes; None where no step times of the workload are stored."""
    plan = findings.plan
    if plan is None:
        return None
    data = plan_data(plan)
    label = f"Time to {plan.goal} against batch size for {plan.workload}"
    picture = make_picture(plan_figure(replace(data, caption="")), data.panels, f"{anchor}-plan", label, data.caption)
    return Section(
        "Time and cost",
        (
            Paragraph(" ".join(plan_answer(plan)), "answer"),
            Warnings((*plan.notes, *throughput_notes(plan.throughput))),
            picture,
            plan_table(plan),
            Facts([("Measured on", plan.machine or "given numbers"), *throughput_facts(plan.throughput.fit)]),
        ),
    )
