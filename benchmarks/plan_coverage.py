"""How often the intervals of step times and of plans hold the truth, on made workloads and made machines.

    python benchmarks/plan_coverage.py [--draws 2000] [--json FILE.json]

A made machine takes t0 + b / tau for a step, times exp(fault), a fault of its own at every batch size, because no
machine keeps to a line; a repeat of the measurement scatters about that. A made workload is tuned at some batch sizes
as in coverage.py: the best of n points lies above the best there is by its excess, and six fresh seeds are trained.
What is asked is asked of the package's own functions. The truth of a batch size is the median time of the configuration
that was tuned there; of one that was not tuned, that of a configuration which the same search would find.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from coverage import (
    B_CRIT,
    FIVE,
    GOAL,
    S_MIN,
    SEARCH,
    SEED_NOISE,
    TWELVE,
    confirmed_study,
    holds,
    median,
    tabulate,
    width,
)

from batchlab.analysis import (
    Interval,
    StepsToResult,
    WorkloadSummary,
    choose_headline,
    confirmed_steps,
    fit_critical_batch,
)
from batchlab.analysis.times.expected import Expected
from batchlab.analysis.times.expected_steps import expected_steps
from batchlab.analysis.times.throughput import Throughput
from batchlab.analysis.times.throughput_fit import StepTimes, fit_throughput
from batchlab.analysis.times.training_plan import make_plan
from batchlab.core.protocol import Protocol
from batchlab.core.trial import Status, Trial

T0, TAU = 0.018, 1397.0


@dataclass(frozen=True)
class Machine:
    """How step times are made."""

    name: str
    batch_sizes: tuple[int, ...]
    repeats: int
    noise: float
    """Of a repeat, relative."""

    fault: float
    """Of a batch size, relative, whatever the repeat."""


MACHINES = (
    Machine("5 sizes, 8 repeats, noise 5 %, on the line", FIVE, 8, 0.05, 0.0),
    Machine("5 sizes, 8 repeats, noise 5 %, faults 5 %", FIVE, 8, 0.05, 0.05),
    Machine("12 sizes, 8 repeats, noise 5 %, on the line", TWELVE, 8, 0.05, 0.0),
    Machine("12 sizes, 8 repeats, noise 2 %, faults 10 %", TWELVE, 8, 0.02, 0.1),
    Machine("12 sizes, 6 repeats, noise 20 %, faults 2 %", TWELVE, 6, 0.2, 0.02),
    Machine("3 sizes, 6 repeats, noise 5 %, faults 5 %", (16, 128, 1024), 6, 0.05, 0.05),
)


@dataclass(frozen=True)
class Workload:
    """How a tuned workload is made."""

    name: str
    batch_sizes: tuple[int, ...]
    num_trials: int
    is_confirmed: bool = True


WORKLOADS = (
    Workload("confirmed, 5 sizes, n = 12", FIVE, 12),
    Workload("confirmed, 12 sizes, n = 16", TWELVE, 16),
    Workload("minima, 5 sizes, n = 12", FIVE, 12, is_confirmed=False),
    Workload("minima, 12 sizes, n = 16", TWELVE, 16, is_confirmed=False),
)


def step_seconds(rng: np.random.Generator, machine: Machine, batch_size: float) -> float:
    """Return what a step takes at a batch size, its fault included."""
    return (T0 + batch_size / TAU) * math.exp(machine.fault * rng.standard_normal())


def measure(rng: np.random.Generator, machine: Machine) -> tuple[dict[int, float], list[StepTimes]]:
    """Return the true step times and those measured."""
    truths = {size: step_seconds(rng, machine, size) for size in machine.batch_sizes}
    noise = {size: np.exp(machine.noise * rng.standard_normal(machine.repeats)) for size in truths}
    times = [
        StepTimes(batch_size=size, seconds=tuple((truth * noise[size]).tolist())) for size, truth in truths.items()
    ]
    return truths, times


def tuned_steps(rng: np.random.Generator, workload: Workload, batch_size: float) -> float:
    """Return the median steps of the best of n configurations at a batch size."""
    excess = SEARCH * float(np.abs(rng.standard_normal(workload.num_trials)).min())
    return S_MIN * (1 + B_CRIT / batch_size) * math.exp(excess)


def tune(rng: np.random.Generator, workload: Workload) -> tuple[dict[int, float], WorkloadSummary]:
    """Return the true steps of what was found at each batch size, and the summary."""
    truths = {size: tuned_steps(rng, workload, size) for size in workload.batch_sizes}
    rows = tuple(_row(rng, workload, size, steps) for size, steps in truths.items())
    summary = WorkloadSummary(
        workload="a/b/c",
        goal=GOAL,
        protocol=rows[0].protocol,
        headline=choose_headline(rows),
        rows=rows,
        fit=fit_critical_batch(rows),
        regimes=None,
        tuned=(),
    )
    return truths, summary


def _row(rng: np.random.Generator, workload: Workload, batch_size: int, steps: float) -> StepsToResult:
    lucky = round(steps)
    seeds = [math.ceil(steps * factor) for factor in np.exp(SEED_NOISE * rng.standard_normal(6))]
    trial = Trial.model_construct(trial_id=0, status=Status.COMPLETE, metaparameters={}, last_step=lucky)
    return StepsToResult(
        batch_size=batch_size,
        steps=lucky,
        trial=trial,
        at_boundary=(),
        num_trials=workload.num_trials,
        reached_steps=(lucky,),
        end_step=2 * lucky,
        complete=workload.num_trials,
        infeasible=0,
        incomplete=0,
        confirmed=confirmed_steps(confirmed_study({0: seeds}, 6), GOAL) if workload.is_confirmed else None,
        protocol=Protocol.model_construct(kind="race", race_factor=1.5, max_steps=10**9),
    )


# What is measured: a list of plain rows each.


def measure_throughput(draws: int, machines: Sequence[Machine] = MACHINES) -> list[dict[str, Any]]:
    return [_throughput_row(machine, draws) for machine in machines]


def _throughput_row(machine: Machine, draws: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    found: dict[str, list[tuple[Interval, float]]] = {"t0": [], "tau": [], "measured": [], "between": [], "beyond": []}
    between = math.isqrt(machine.batch_sizes[1] * machine.batch_sizes[2])
    for _ in range(draws):
        truths, times = measure(rng, machine)
        throughput, fit = Throughput.measured(times), fit_throughput(times)
        found["t0"].append((_known(fit.t0_interval), T0))
        found["tau"].append((_known(fit.tau_interval), TAU))
        measured = machine.batch_sizes[1]
        found["measured"].append((_known(throughput.step_seconds(measured).interval), truths[measured]))
        for name, size in (("between", between), ("beyond", 4 * machine.batch_sizes[-1])):
            found[name].append((_known(throughput.step_seconds(size).interval), step_seconds(rng, machine, size)))
    return {"machine": machine.name, **_covered(found)}


def measure_plans(
    draws: int, workloads: Sequence[Workload] = WORKLOADS, machines: Sequence[Machine] = MACHINES[1:5:2]
) -> list[dict[str, Any]]:
    return [_plan_row(workload, machine, draws) for workload in workloads for machine in machines]


def _plan_row(workload: Workload, machine: Machine, draws: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    found: dict[str, list[tuple[Interval, float]]] = {"tuned": [], "between": [], "beyond": [], "fastest": []}
    sizes = workload.batch_sizes
    asked = {"tuned": sizes[len(sizes) // 2], "between": 3 * sizes[1] // 2, "beyond": 4 * sizes[-1]}
    for _ in range(draws):
        steps, summary = tune(rng, workload)
        times, measured = measure(rng, machine)
        plan = make_plan(expected_steps(summary), Throughput.measured(measured))
        true_seconds = partial(_true_seconds, rng, workload, machine, steps, times)
        for name, size in asked.items():
            seconds = _expected(plan.curve.at(size)).times(plan.throughput.step_seconds(size))
            found[name].append((_known(seconds.interval), true_seconds(size)))
        found["fastest"].append((_known(plan.fastest.seconds.interval), true_seconds(plan.fastest.batch_size)))
    return {"workload": workload.name, "machine": machine.name, **_covered(found)}


def _true_seconds(
    rng: np.random.Generator,
    workload: Workload,
    machine: Machine,
    steps: dict[int, float],
    times: dict[int, float],
    size: int,
) -> float:
    each = times[size] if size in times else step_seconds(rng, machine, size)
    return each * (steps[size] if size in steps else tuned_steps(rng, workload, size))


def _covered(found: dict[str, list[tuple[Interval, float]]]) -> dict[str, Any]:
    coverage = {name: float(np.mean([holds(*pair) for pair in pairs])) for name, pairs in found.items()}
    widths = {f"{name} width": median([width(interval) for interval, _ in pairs]) for name, pairs in found.items()}
    return {**coverage, **widths}


def _known(interval: Interval | None) -> Interval:
    assert interval is not None
    # A bound of zero is none, and its width would be infinite.
    return Interval(interval.low or None, interval.high)


def _expected(number: Expected | None) -> Expected:
    assert number is not None
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000, help="made workloads and machines for each row")
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    options = parser.parse_args()
    parts: dict[str, Callable[[int], list[dict[str, Any]]]] = {"step times": measure_throughput, "plans": measure_plans}
    found = {}
    for name, ask in parts.items():
        found[name] = ask(options.draws)
        print(f"\n## {name}\n\n{tabulate(found[name])}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"draws": options.draws, **found}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
