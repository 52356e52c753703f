"""batchlab plan: time and cost to a goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batchlab.cli.options import (
    DEFAULT_LAB,
    GoalOption,
    JsonOption,
    LabOption,
    SweepOption,
    TrialsOption,
    WorkloadArgument,
    fail_on_problems,
    print_figure,
    print_json,
    print_text,
    summarise_or_exit,
    terminal_width,
)
from batchlab.errors import InputError

if TYPE_CHECKING:
    from batchlab.analysis import TrainingPlan
    from batchlab.errors import LabError

MOST_WORKERS = 1_000_000
LEAST_PRICE, MOST_PRICE = 1e-9, 1e9


def plan(
    workload: WorkloadArgument = None,
    lab: LabOption = DEFAULT_LAB,
    goal: GoalOption = None,
    trials: TrialsOption = None,
    sweep: SweepOption = None,
    steps: Annotated[
        str | None, typer.Option("--steps", help="Steps in place of the lab's: s_min=100,e_min=51200.")
    ] = None,
    throughput: Annotated[
        str | None,
        typer.Option(
            "--throughput",
            help="Step times in place of the lab's: t0=18.6ms,tau=1381; latency=, bandwidth=, gradient= for a link.",
        ),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option("--price-per-worker-hour", help="What a worker costs; else the time of all workers is told."),
    ] = None,
    max_workers: Annotated[
        int | None,
        typer.Option(
            "--max-workers", min=1, max=MOST_WORKERS, help="As many as were measured with a core each, else 1."
        ),
    ] = None,
    deadline: Annotated[
        str | None, typer.Option("--deadline", help="Also the best value in this time, from the stored curves: 5m.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="A folder for the figure; else none is drawn.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell which batch size, learning rate and workers to take. With time and cost to the goal, and their intervals.

    From the steps of a sweep and from step times that `batchlab scaling` has measured, or from numbers that are given.
    """
    _check_price(price)
    if steps is not None:
        _check_unused({"--deadline": deadline, "--goal": goal, "--trials": trials}, "--steps")
    if steps is not None and throughput is not None:
        given_lab = None if lab == DEFAULT_LAB else lab
        _check_unused({"a workload": workload, "--sweep": sweep, "--lab": given_lab}, "both --steps and --throughput")
    problems: list[LabError] = []
    if steps is not None:
        made = _given(lab, workload, sweep, steps, throughput, max_workers, price)
    else:
        made, problems = _of_lab(lab, workload, sweep, goal, trials, throughput, max_workers, price, deadline)
    _print(made, as_json)
    if out is not None:
        print_figure("plan", made, out / "plan", as_json=as_json)
    fail_on_problems(problems)


def _given(
    lab: Path,
    workload: str | None,
    sweep: str | None,
    steps: str,
    throughput: str | None,
    max_workers: int | None,
    price: float | None,
) -> TrainingPlan:
    """Return the plan of given steps; a lab is asked only where step times are not given as well."""
    from batchlab.plan.given import given_steps, given_throughput
    from batchlab.plan.lab_plan import given_plan, throughput_of
    from batchlab.store.lab import Lab

    curve = given_steps(steps)
    times = given_throughput(throughput) if throughput is not None else throughput_of(Lab.open(lab), workload, sweep)
    return given_plan(curve, times, max_workers or times.planned_workers[-1], price)


def _of_lab(
    lab: Path,
    workload: str | None,
    sweep: str | None,
    goal: str | None,
    trials: int | None,
    throughput: str | None,
    max_workers: int | None,
    price: float | None,
    deadline: str | None,
) -> tuple[TrainingPlan, list[LabError]]:
    from batchlab.analysis.trials.selection import first_trials
    from batchlab.plan.given import given_deadline, given_throughput
    from batchlab.plan.lab_plan import needed_throughput
    from batchlab.plan.train_examples import num_train_examples
    from batchlab.report.planned import check_one_batch_size, plan_summary, with_deadline
    from batchlab.store.lab import Lab

    seconds = None if deadline is None else given_deadline(deadline)
    given = None if throughput is None else given_throughput(throughput)
    store = Lab.open(lab)
    results, summary = summarise_or_exit(store, workload, sweep, goal, trials)
    check_one_batch_size(results.sweep, summary)
    times = given or needed_throughput(store, results.sweep)
    times = replace(times, train_examples=num_train_examples(results.sweep))
    workers = max_workers or times.planned_workers[-1]
    made = plan_summary(summary, times, workers, price)
    if seconds is not None:
        made = with_deadline(made, [first_trials(study, trials) for study in results.results], seconds, workers)
    return made, results.problems


def _print(made: TrainingPlan, as_json: bool) -> None:
    from batchlab.analysis import plan_json
    from batchlab.report.tables import text_of
    from batchlab.report.words.plan import plan_answer, plan_table

    if as_json:
        print_json(plan_json(made))
        return
    for sentence in plan_answer(made):
        print_text(sentence)
    table = plan_table(made)
    print(text_of(table, terminal_width()))
    if table.caption:
        print_text(f"{table.caption}: the front and the fastest of each number of workers; --json has all.")
    for note in made.notes:
        print_text(f"Note: {note}")


def _check_unused(options: Mapping[str, object], given: str) -> None:
    """Raise BadParameter for what asks a lab that is not asked where numbers are given in its place."""
    for name in [name for name, value in options.items() if value is not None]:
        raise typer.BadParameter(f"{name} is for plans from a lab, and {given} replace the lab; leave one out")


def _check_price(price: float | None) -> None:
    if price is None:
        return
    if not price > 0:
        raise InputError(f"--price-per-worker-hour {price:g}: give a price above 0, or leave it out for worker-hours.")
    if not LEAST_PRICE <= price <= MOST_PRICE:
        raise InputError(f"--price-per-worker-hour {price:g}: give a price from {LEAST_PRICE:g} to {MOST_PRICE:g}.")
