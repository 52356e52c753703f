"""How trials were trained, and whether their answers were confirmed."""

from __future__ import annotations

from collections.abc import Collection

from batchlab.analysis import WorkloadSummary
from batchlab.analysis.answers.confirmed import fewest_seeds
from batchlab.analysis.text import listed, span
from batchlab.core.goal import Goal


def protocol_text(summary: WorkloadSummary) -> str:
    """Return how the trials were trained, and so what the numbers hold for."""
    how = {
        "race": _race(summary),
        "full": _full(summary),
        "imported": "Imported: these trials were not run here, and their minimum is the paper's statistic.",
    }[summary.protocol.kind]
    return f"{how} {confirmed}" if (confirmed := confirmation_text(summary)) else how


def confirmation_text(summary: WorkloadSummary) -> str | None:
    """Return whether the answers were confirmed, and if not why; None where they could not have been."""
    if summary.is_confirmed:
        again = f"Confirmed: the best points were trained again with {confirmed_seeds(summary)} fresh seeds."
        return " ".join([again, *_lacking_intervals(summary)])
    if summary.protocol.kind == "imported" or summary.protocol.is_closed_form or summary.best is None:
        return None
    missed = [row for row in summary.rows if row.failed_to_confirm]
    if missed:
        sizes = [row.batch_size for row in missed]
        ends = [row.confirmed.end_step for row in missed if row.confirmed]
        diverged = any(row.confirmed.num_diverged for row in missed if row.confirmed)
        short = f"missed the goal within {span(ends)} steps{' or diverged' if diverged else ''}"
        return f"Not confirmed at batch size {listed(sizes)}: half or more of the runs with fresh seeds {short}."
    others = {row.confirmed_goal for row in summary.rows if row.confirmed_goal is not None}
    if others:
        return _confirmed_otherwise(summary, others)
    how = "`batchlab confirm`, or for code of your own `run` with `sweep.confirm`,"
    return f"Not confirmed: {how} trains the best points for the sweep's goal again with fresh seeds."


def _race(summary: WorkloadSummary) -> str:
    if not any(row.is_reached or row.ended_by == "race" for row in summary.rows):
        return "Raced, but no trial met the goal: every trial that did not diverge was trained to its budget."
    factor = summary.protocol.race_factor
    until = "soon after" if factor is None else "with" if factor == 1 else f"at {factor:g} times the steps of"
    goal = "the sweep's goal"
    return f"Raced: trials ended {until} the first that met {goal}, so counts of diverged and stuck ones end there."


def _full(summary: WorkloadSummary) -> str:
    alone = ", or ended by itself before" if any(row.ended_alone for row in summary.rows) else ""
    return f"Full protocol: every trial was trained to its budget{alone}."


def _lacking_intervals(summary: WorkloadSummary) -> list[str]:
    """Return a sentence for confirmed answers whose seeds are too few, for so many points, to give an interval."""
    made = [(row.batch_size, row.confirmed) for row in summary.rows if row.confirmed]
    few = [(size, each) for size, each in made if each.seeds < fewest_seeds(each.points)]
    if not few:
        return []
    seeds, points = span([each.seeds for _, each in few]), [each.points for _, each in few]
    return [
        f"{seeds} seeds of {span(points)} points give no 95 % interval (batch size {listed(size for size, _ in few)}): "
        f"{fewest_seeds(max(points))} seeds would."
    ]


def _confirmed_otherwise(summary: WorkloadSummary, goals: Collection[Goal]) -> str:
    """Return what was confirmed in place of what is asked: another goal, or more trials or batch sizes."""
    if summary.goal not in goals:
        return f"Not confirmed: fresh seeds were trained to {' and '.join(sorted(map(str, goals)))}, not to this goal."
    lacking = [row for row in summary.rows if row.is_reached and row.confirmed is None]
    sizes = [row.batch_size for row in lacking if row.confirmed_goal is None]
    if sizes:
        return f"Not confirmed at batch size {listed(sizes)}: no point was trained again there."
    sizes = [row.batch_size for row in lacking]
    return (
        f"Not confirmed at batch size {listed(sizes)}: the points that were trained again are not among these trials."
    )


def confirmed_seeds(summary: WorkloadSummary) -> str:
    """Return how many fresh seeds the points of each batch size were confirmed with."""
    return span([row.confirmed.seeds for row in summary.rows if row.confirmed])
