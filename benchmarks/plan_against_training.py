"""What a plan says of a time, against training it: one process, one trial at a time, fresh seeds.

    python benchmarks/plan_against_training.py LAB [--sweep NAME] [--batch-sizes 2,16,128] [--seeds 12] [--rounds 2]

The lab holds a finished, confirmed sweep of a workload that has a name. In each round step times are measured anew
(`batchlab scaling` stores them), the plan is made, and at every batch size the configuration that the plan speaks of is
trained to the goal with fresh seeds, batch sizes in turns. What is timed is updates, as in the plan; runs that
have not met the goal after four times the planned steps rank last.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from coverage import tabulate

from batchlab.analysis import TrainingPlan
from batchlab.analysis.answers.confirmed import median_interval
from batchlab.core.study import Study
from batchlab.engine.base import Point, Trainer
from batchlab.engine.loop import advance
from batchlab.plan.scaling import measure_throughput
from batchlab.report.answers import summarise_sweep
from batchlab.report.lab_plan import plan_summary
from batchlab.report.step_times import measured_throughput
from batchlab.run.do_errand import do_errand
from batchlab.run.executors.choose import make_executor
from batchlab.run.trainers import make_trainer
from batchlab.store.lab import Lab

FIRST_SEED = 500_000
"""Trials of a search, and their replicates, have other numbers."""


@dataclass(frozen=True)
class Run:
    """One training to the goal."""

    steps: float
    seconds: float
    """Of the updates; both are infinite where the goal was not met."""


@dataclass(frozen=True)
class RunTask:
    """Train one point to the goal in a worker."""

    study: Study
    point: Point
    most_steps: int

    doing: ClassVar[str] = "training to the goal"

    def perform(self, trainer: Trainer) -> Run:
        program, seconds = trainer.program(self.study, [self.point]), 0.0
        for step in itertools.takewhile(lambda step: step <= self.most_steps, self.study.evaluation.steps(10**9)):
            started = time.perf_counter()
            while program.step < step and len(program.trial_ids):
                advance(program, step)
            seconds += time.perf_counter() - started
            if not len(program.trial_ids):
                break
            if self.study.goal.is_met(program.evaluate()[self.study.goal.metric][0]):
                return Run(program.step, seconds)
        return Run(math.inf, math.inf)


def run_round(lab: Lab, sweep: str | None, batch_sizes: list[int], seeds: range) -> list[dict[str, Any]]:
    """Return a row for each batch size."""
    results, summary = summarise_sweep(lab, sweep_name=sweep)
    spec = results.sweep.spec
    assert spec is not None
    trainer = make_trainer(spec, None)
    throughput = measured_throughput(measure_throughput(spec, trainer))
    plan = plan_summary(summary, throughput)
    runs: dict[int, list[Run]] = {size: [] for size in batch_sizes}
    with closing(make_executor(trainer, [], num_workers=1)) as executor:
        for seed, size in itertools.product(seeds, batch_sizes):
            point = next(point for point in summary.tuned if point.batch_size == size)
            study = spec.study(size)
            most = math.ceil(4 * planned(plan, size)["steps"])
            metaparameters = study.metaparameters(dict(point.metaparameters))
            runs[size].append(do_errand(executor, RunTask(study, Point(FIRST_SEED + seed, metaparameters), most)))
    return [{**planned(plan, size), **trained(runs[size])} for size in batch_sizes]


def planned(plan: TrainingPlan, batch_size: int) -> dict[str, Any]:
    row = next(row for row in plan.rows if row.batch_size == batch_size)
    interval = row.seconds.interval
    return {
        "batch size": batch_size,
        "steps": row.steps.value,
        "ms per step": 1e3 * row.step_seconds.value,
        "planned s": row.seconds.value,
        "planned low": interval.low if interval else None,
        "planned high": interval.high if interval else None,
    }


def trained(runs: list[Run]) -> dict[str, Any]:
    seconds = [run.seconds if math.isfinite(run.seconds) else None for run in runs]
    interval = median_interval(seconds)
    met = [run for run in runs if math.isfinite(run.seconds)]
    return {
        "seeds": len(runs),
        "met": len(met),
        "trained steps": statistics.median(run.steps for run in runs),
        "trained ms per step": 1e3 * statistics.median(run.seconds / run.steps for run in met),
        "trained s": statistics.median(run.seconds for run in runs),
        "trained low": interval.low,
        "trained high": interval.high,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lab", type=Path)
    parser.add_argument("--sweep", help="which one, where the lab holds several")
    parser.add_argument("--batch-sizes", default="2,16,128")
    parser.add_argument("--seeds", type=int, default=12, help="of each batch size and round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    options = parser.parse_args()
    sizes = [int(size) for size in options.batch_sizes.split(",")]
    found = []
    for number in range(options.rounds):
        seeds = range(number * options.seeds, (number + 1) * options.seeds)
        rows = run_round(Lab.open(options.lab), options.sweep, sizes, seeds)
        for row in rows:
            inside = row["planned low"] <= row["trained s"] <= (row["planned high"] or math.inf)
            row["inside"] = "yes" if inside else "no"
        print(f"\n## Round {number + 1}\n\n{tabulate(rows)}", flush=True)
        found.append(rows)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
