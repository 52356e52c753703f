"""A training plan in sentences and as a table, on the command line and in the report."""

from __future__ import annotations

from collections.abc import Iterator

from batchlab.analysis import Expected, PlanRow, TrainingPlan, TunedPoint, WorkloadSummary
from batchlab.analysis.interval import SPAN
from batchlab.analysis.text import count, listed, significant
from batchlab.analysis.times.training_plan import ClosedForm
from batchlab.report.blocks import Table
from batchlab.report.tables import format_steps, format_value
from batchlab.report.words.interval import interval_text, spell_time, time_unit
from batchlab.report.words.protocol import confirmation_text

MOST_ROWS = 40
"""Of more, a table shows the front and the fastest of each number of workers."""

COUNTED = "Time counts updates alone: no evaluation, no start, no reading of data."
MORE_STEPS = "More batch sizes that meet the goal, or `batchlab confirm` with more seeds, six at least,"
MORE_TIMES = "Step times (`batchlab scaling`) at more batch sizes, or with six repeats or more,"


def plan_answer(plan: TrainingPlan) -> list[str]:
    """Return what to do, one sentence first, and what it takes; each sentence stands alone."""
    return [f"{_advice(plan)}.", *_others(plan), *_formula(plan), *_by_deadline(plan)]


def plan_line(plan: TrainingPlan) -> str:
    """Return the plan in one line, for a summary of something else."""
    row, measured = plan.fastest, f" on {plan.machine}" if plan.machine else ""
    how = f"batch size {count(row.batch_size)}{_on_workers(row, plan)}"
    return f"Fastest{measured}: {how}, {spell_time(row.seconds)}{_extrapolated(row)}; `batchlab plan` has the rest."


def plan_table(plan: TrainingPlan) -> Table:
    """Return a row for each batch size and number of workers; of very many, those that matter."""
    rows = shown_rows(plan)
    cost = "Cost" if plan.price is not None else "Worker time"
    header = ["Batch size", "Workers", "Steps", "ms per step", "Time", "95 % interval", cost, "Front", "Note"]
    cells = [_cells(plan, row) for row in rows]
    if not any(each[-1] for each in cells):
        header, cells = header[:-1], [each[:-1] for each in cells]
    return Table(
        name="plan",
        header=header,
        rows=cells,
        numbers=range(7),
        muted=[place for place, row in enumerate(rows) if row.is_extrapolated],
        caption=None if len(rows) == len(plan.rows) else f"{len(rows)} of {count(len(plan.rows))} rows",
    )


def shown_rows(plan: TrainingPlan) -> list[PlanRow]:
    """Return the rows of a table that can be read: all, or the front and the fastest of each number of workers."""
    if len(plan.rows) <= MOST_ROWS:
        return list(plan.rows)
    fastest: dict[int, PlanRow] = {}
    for row in plan.rows:
        best = fastest.get(row.workers)
        if best is None or row.seconds.value < best.seconds.value:
            fastest[row.workers] = row
    return [row for row in plan.rows if row.is_pareto or row is fastest[row.workers]]


def plan_notes(plan: TrainingPlan, summary: WorkloadSummary | None) -> tuple[str, ...]:
    """Return what to know before trusting a plan, a sentence each."""
    return (COUNTED, *_notes_on_steps(plan, summary), *_notes_on_throughput(plan), *_notes_on_intervals(plan))


def _advice(plan: TrainingPlan) -> str:
    row, goal = plan.fastest, f" to {plan.goal}" if plan.goal else " to the goal"
    how = f"batch size {count(row.batch_size)}{_on_workers(row, plan)}"
    return f"Train with {how}{_learning_rate(plan, row)}: {spell_time(row.seconds)}{goal}{_extrapolated(row)}"


def _learning_rate(plan: TrainingPlan, row: PlanRow) -> str:
    """Return the region of the learning rate that was found at the nearest batch size."""
    point = plan.nearest_tuned(row.batch_size)
    if point is None or point.learning_rate is None:
        return ""
    found, around = _rate_region(point, point.learning_rate), _rates_around(plan, point)
    others = {name: value for name, value in point.metaparameters.items() if name != point.rate_name}
    named = ", ".join(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in others.items())
    where = "" if point.batch_size == row.batch_size else f"as found at batch size {count(point.batch_size)}"
    more = ", ".join(text for text in (named and f"with {named}", where, around) if text)
    return f" and a learning rate of {found}{f' ({more})' if more else ''}"


def _rate_region(point: TunedPoint, best: float) -> str:
    """Return the learning rates of the top trials, or where those are too few, the best alone."""
    low, high = (format_value(rate) for rate in point.learning_rate_region or (best, best))
    return format_value(best) if low == high else f"{low} to {high}, best {format_value(best)}"


def _rates_around(plan: TrainingPlan, point: TunedPoint) -> str:
    """Return what was best at the batch sizes on both sides, where the top trials of this one are too few to tell."""
    place = plan.tuned.index(point)
    near = [one for one in plan.tuned[max(0, place - 1) : place + 2] if one.learning_rate is not None]
    rates = [one.learning_rate for one in near if one.learning_rate is not None]
    if point.learning_rate_region or min(rates) == max(rates):
        return ""
    sizes = f"{count(near[0].batch_size)} to {count(near[-1].batch_size)}"
    return f"the best at batch sizes {sizes} were {format_value(min(rates))} to {format_value(max(rates))}"


def _others(plan: TrainingPlan) -> Iterator[str]:
    if plan.cheapest == plan.fastest:
        yield "That is the fastest and the cheapest."
        return
    for name, row in (("Cheapest", plan.cheapest), ("Balanced (least time times cost)", plan.balanced)):
        if row != plan.fastest:
            how = f"batch size {count(row.batch_size)}{_on_workers(row, plan)}"
            yield f"{name}: {how}, {spell_time(row.seconds)}, {_told_cost(plan, row)}{_extrapolated(row)}."
    yield f"The fastest costs {_told_cost(plan, plan.fastest)}."


def _formula(plan: TrainingPlan) -> Iterator[str]:
    closed = plan.closed_form
    if closed is not None:
        yield (
            f"One worker by the formula sqrt(B_crit B_half): batch size {significant(closed.batch_size, 4)}, "
            f"{spell_time(Expected(closed.seconds))}{_extrapolated(closed)}."
        )


def _by_deadline(plan: TrainingPlan) -> Iterator[str]:
    best = plan.best_by_deadline
    if plan.deadline is None:
        return
    within = f"In {spell_time(Expected(plan.deadline))}"
    shortest = min((row.step_seconds for row in plan.rows), key=lambda each: each.value)
    if plan.deadline < shortest.value:
        yield f"{within} not one step is done: the shortest takes {spell_time(shortest)}."
        return
    if best is None or plan.goal is None:
        yield f"{within} no stored trial has improved on its start."
        return
    point = ", ".join(f"{name} {format_value(value)}" for name, value in best.trial.metaparameters.items())
    beyond = " (its step time is extrapolated)" if best.seconds.is_extrapolated else ""
    yield (
        f"{within} the best {plan.goal.metric} is {significant(best.value)}, at batch size {count(best.batch_size)} "
        f"on {_workers(best.workers)} with {point}: step {count(best.step)}, after {spell_time(best.seconds)}{beyond}. "
        f"It is the best of n = {count(best.num_trials)} trials there, lucky as well as good, and has no interval."
    )
    for sizes, why, way_out in (
        (best.raced, "as a race ends early", 'protocol = "full"'),
        (best.spent, "to the end of its budget", "a larger max_steps or max_examples"),
    ):
        if sizes:
            short = f"Batch size {listed(sizes)} was trained for less than that, {why}"
            yield f"{short}: with all of the time it might do better ({way_out})."


def _notes_on_steps(plan: TrainingPlan, summary: WorkloadSummary | None) -> Iterator[str]:
    if summary is None:
        yield "Steps were given and are taken as exact."
        return
    fit = summary.fit
    if fit is None:
        yield "Fewer than three batch sizes met the goal: there is no curve between or beyond them."
    if not summary.is_confirmed and not summary.protocol.is_closed_form:
        are_minima = "are" if fit is None else "follow a curve of"
        lucky = "" if plan.curve.is_confirmed else f" Steps here {are_minima} minima, which are lucky."
        yield f"{confirmation_text(summary) or 'Not confirmed.'}{lucky}"
    if fit is not None and fit.warning:
        yield fit.warning
    if fit is not None and fit.b_crit is None:
        yield "So nothing is said of batch sizes beyond those that met the goal."
    if summary.regimes is not None and summary.regimes.source == "shape":
        poor = "A hyperbola does not describe these steps well"
        closer = "These steps follow a curve with another shape more closely than the hyperbola"
        yield f"{poor if summary.regimes.departs else closer}: batch sizes that were not tuned may be off by more."
    above = [size for size in plan.curve.missed if size > plan.curve.reached[-1]]
    if above:
        yield f"Batch size {listed(above)} missed the goal: nothing is said of it, nor of larger ones."
    failed = [row.batch_size for row in summary.rows if row.failed_to_confirm and row.batch_size not in above]
    if failed:
        yield f"So nothing is said of batch size {listed(failed)}."


def _notes_on_throughput(plan: TrainingPlan) -> Iterator[str]:
    line = plan.throughput
    if not line.times:
        yield "Step times were given and are taken as exact."
    elif plan.machine:
        yield f"Step times were measured on {plan.machine}."
    if line.fit.all_reduce is None and any(row.workers > 1 for row in plan.rows):
        yield (
            "The time that workers spend exchanging gradients was neither measured nor given, and is counted as zero: "
            "several workers will be slower than this."
        )
    if any(row.is_extrapolated for row in plan.rows):
        yield "Rows marked as extrapolated lie beyond what was measured."
    if any(plan.is_fitted(row) and not row.is_extrapolated for row in plan.rows):
        yield "Steps of rows marked as fitted are those of the curve: these batch sizes have no answer of their own."


def _notes_on_intervals(plan: TrainingPlan) -> Iterator[str]:
    """Say where an interval, or an end of it, is left out, and what would give one."""
    lacking = [row for row in plan.rows if row.seconds.lacks_bound]
    if not lacking:
        return
    of_steps = any(row.steps.lacks_bound for row in lacking)
    of_times = any(row.step_seconds.lacks_bound for row in lacking)
    yield (
        f"{count(len(lacking))} of {count(len(plan.rows))} rows have no 95 % interval, or one bound only: the data "
        f"do not determine it, or it would run over more than a factor of {count(int(SPAN))}."
    )
    if of_steps or not of_times:
        yield f"{MORE_STEPS} would give one."
    if of_times or not of_steps:
        yield f"{MORE_TIMES} would give one."


def _cells(plan: TrainingPlan, row: PlanRow) -> list[str]:
    size, unit = time_unit(row.seconds.value)
    picks = {"fastest": plan.fastest, "cheapest": plan.cheapest, "balanced": plan.balanced}
    names = [name for name, pick in picks.items() if pick == row]
    return [
        count(row.batch_size),
        count(row.workers),
        significant(row.steps.value) if plan.is_fitted(row) else format_steps(row.steps.value),
        significant(1e3 * row.step_seconds.value),
        f"{significant(row.seconds.value / size)} {unit}",
        interval_text(row.seconds.interval, size),
        _cost(plan, row),
        ", ".join(names) or ("yes" if row.is_pareto else ""),
        "extrapolated" if row.is_extrapolated else "fitted" if plan.is_fitted(row) else "",
    ]


def _cost(plan: TrainingPlan, row: PlanRow) -> str:
    """Return the price; without one the time of all workers, which is kept in hours, in the unit that suits it."""
    if plan.price is not None:
        return significant(row.cost.value)
    seconds = 3600 * row.cost.value
    size, unit = time_unit(seconds)
    return f"{significant(seconds / size)} {unit}"


def _told_cost(plan: TrainingPlan, row: PlanRow) -> str:
    return f"{_cost(plan, row)} {'of worker time' if plan.price is None else 'in all'}"


def _on_workers(row: PlanRow, plan: TrainingPlan) -> str:
    has_several = any(each.workers > 1 for each in plan.rows)
    return f" on {_workers(row.workers)}" if has_several else ""


def _workers(number: int) -> str:
    return "1 worker" if number == 1 else f"{count(number)} workers"


def _extrapolated(found: PlanRow | ClosedForm) -> str:
    return " (extrapolated)" if found.is_extrapolated else ""
