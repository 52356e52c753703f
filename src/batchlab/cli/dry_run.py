"""batchlab run --dry-run: what a sweep may cost."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from batchlab.cli.options import print_json, print_table

if TYPE_CHECKING:
    from batchlab.core.sweep import Sweep
    from batchlab.engine.base import Trainer
    from batchlab.run.estimate import StudyEstimate

CONFIRMED = "Trials + runs that confirm the best points with fresh seeds."
_HEADER = [
    "batch size",
    "trials",
    "points",
    "max steps",
    "us/trial-step",
    "expected steps",
    "expected (one core)",
    "at most (one core)",
    "first point",
]


def print_dry_run(
    sweep: Sweep, data: Path | None, workers: int | None, as_json: bool = False, trainer: Trainer | None = None
) -> None:
    """Print each study with its cost, expected and at most; say on stderr how far the measurements are."""
    from batchlab.run.estimate import estimate_sweep

    studies = estimate_sweep(sweep, data, lambda sentence: print(sentence, file=sys.stderr, flush=True), trainer)
    num_workers = workers or os.cpu_count() or 1
    if as_json:
        facts = {"sweep": sweep.name, "workload": sweep.workload.name, "workers": num_workers}
        print_json(facts | {"protocol": sweep.search.protocol, "studies": [asdict(study) for study in studies]})
        return
    goal, protocol = sweep.search.hardest_goal, sweep.search.protocol
    print(f"Sweep {sweep.name}: {sweep.workload.name}, goal {goal}, {protocol} protocol")
    print_table(_HEADER, [_cells(study) for study in studies])
    print(*_sentences(sweep, studies, num_workers), sep="\n")


def _cells(study: StudyEstimate) -> list[str]:
    from batchlab.core.duration import spell_seconds

    return [
        f"{study.batch_size:,}",
        f"{study.trials} + {study.replicates}" if study.replicates else f"{study.trials}",
        f"{study.attempts}",
        f"{study.max_steps:,}",
        f"{1e6 * study.seconds_per_trial_step:,.0f}",
        "?" if study.expected_steps is None else f"{study.expected_steps:,}" + ("*" if study.expected_from else ""),
        "?" if study.expected_seconds is None else spell_seconds(study.expected_seconds),
        spell_seconds(study.max_seconds),
        ", ".join(f"{name} {value:.3g}" for name, value in study.first_point.items()),
    ]


def _sentences(sweep: Sweep, studies: list[StudyEstimate], num_workers: int) -> list[str]:
    """Return what the table comes to; the race is spoken of where there is one."""
    from batchlab.core.duration import spell_seconds

    most = spell_seconds(sum(study.max_seconds for study in studies) / num_workers)
    expected = spell_seconds(sum(study.expected_seconds or 0.0 for study in studies) / num_workers)
    lines = [CONFIRMED] if any(study.replicates for study in studies) else []
    if sweep.search.protocol == "full":
        training = f"About {expected} with {num_workers} workers: every trial trains to its budget."
        return [*lines, f"{training} Nothing was stored."]
    if any(study.expected_from for study in studies):
        lines.append("* No trial of the pilot met the goal here: guessed from the nearest batch size where one did.")
    if any(study.expected_seconds is None for study in studies):
        bound = f"at most {most} with {num_workers} workers"
        return [*lines, f"No trial of the pilot met the goal: no time can be expected, {bound}. Nothing was stored."]
    return [
        *lines,
        f"About {expected} expected with {num_workers} workers, going by a pilot of up to {studies[0].pilot.trials} "
        f"trials; at most {most}, if no trial met the goal. Nothing was stored.",
    ]
