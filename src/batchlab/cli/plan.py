"""batchlab plan: time and cost to a goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    from batchlab.analysis import Throughput, TrainingPlan
    from batchlab.errors import LabError

MOST_PLANNED_WORKERS = 1_000_000
"""A plan counts with machines that nobody has yet; `core.limits.MOST_WORKERS` is for processes that are started."""

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
            "--max-workers", min=1, max=MOST_PLANNED_WORKERS, help="As many as were measured with a core each, else 1."
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
    asked = _Asked(lab, workload, sweep, goal, trials, throughput, price, max_workers, deadline)
    made, problems = asked.plan_of_lab() if steps is None else (asked.plan_of_steps(steps), [])
    _print(made, as_json)
    if out is not None:
        print_figure("plan", made, out / "plan", as_json=as_json)
    fail_on_problems(problems)


@dataclass(frozen=True)
class _Asked:
    """What is asked of a plan."""

    lab: Path
    workload: str | None
    sweep: str | None
    goal: str | None
    trials: int | None
    throughput: str | None
    price: float | None
    max_workers: int | None
    deadline: str | None

    def plan_of_steps(self, steps: str) -> TrainingPlan:
        """Return the plan of given steps; the lab is asked only where step times are not given as well."""
        from batchlab.plan.given import given_steps
        from batchlab.report.lab_plan import given_plan
        from batchlab.report.step_times import throughput_of
        from batchlab.store.lab import Lab

        curve = given_steps(steps)
        times = self._given_throughput() or throughput_of(Lab.open(self.lab), self.workload, self.sweep)
        return given_plan(curve, times, self._workers(times), self.price)

    def plan_of_lab(self) -> tuple[TrainingPlan, list[LabError]]:
        """Return the plan of what the lab holds, and what of it cannot be read."""
        from batchlab.analysis.trials.selection import first_trials
        from batchlab.plan.given import given_deadline
        from batchlab.plan.train_examples import num_train_examples
        from batchlab.report.lab_plan import check_one_batch_size, plan_summary, with_deadline
        from batchlab.report.step_times import needed_throughput
        from batchlab.store.lab import Lab

        seconds = None if self.deadline is None else given_deadline(self.deadline)
        given, store = self._given_throughput(), Lab.open(self.lab)
        results, summary = summarise_or_exit(store, self.workload, self.sweep, self.goal, self.trials)
        check_one_batch_size(results.sweep, summary)
        times = given or needed_throughput(store, results.sweep)
        times = replace(times, train_examples=num_train_examples(results.sweep))
        made = plan_summary(summary, times, self._workers(times), self.price)
        if seconds is not None:
            studies = [first_trials(study, self.trials) for study in results.results]
            made = with_deadline(made, studies, seconds, self._workers(times))
        return made, results.problems

    def _given_throughput(self) -> Throughput | None:
        from batchlab.plan.given import given_throughput

        return None if self.throughput is None else given_throughput(self.throughput)

    def _workers(self, times: Throughput) -> int:
        """Return how many workers there may be at the most."""
        return self.max_workers or times.planned_workers[-1]


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
