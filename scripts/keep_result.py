"""Keep a finished sweep under docs/results: its figures and numbers, and on stdout what its README tells.

    .venv/bin/python scripts/keep_result.py LAB SWEEP SPEC.toml [FOLDER]

Writes docs/results/FOLDER, by default named after the sweep: the spec, both figures (SVG, PNG, CSV), curve.json,
trials.csv, measurements.csv and, of a confirmed sweep, confirmed.csv. What was seen, and what it means, is for a person
to write.
"""

from __future__ import annotations

import csv
import math
import shutil
import sys
from bisect import bisect
from pathlib import Path

from batchlab import plots
from batchlab.analysis.answers.best_of import MIN_TRIALS
from batchlab.analysis.answers.steps_to_result import StepsToResult
from batchlab.analysis.summary import WorkloadSummary, curve_json
from batchlab.core.duration import spell_seconds
from batchlab.core.result import StudyResult
from batchlab.files import write_json
from batchlab.published.points import published_steps
from batchlab.report.answers import summarise_sweep
from batchlab.report.tables import published_beside, steps_table
from batchlab.report.words.answer import answer_text
from batchlab.report.words.protocol import protocol_text
from batchlab.store.lab import Lab, SweepResults
from batchlab.store.query import connect

RESULTS = Path(__file__).parent.parent / "docs" / "results"

TRIALS = """
select batch_size, trial_id, status, unnest(metaparameters), columns('^(last_step|diverged_step|round)$')
from trials where sweep = ? order by batch_size, trial_id
"""
MEASUREMENTS = "select * exclude (sweep) from measurements where sweep = ? order by batch_size, trial_id, step"
TRAINED = """
select sum(step)::bigint as steps, sum(examples)::bigint as examples, count(*) as trials
from (
    select batch_size, trial_id, max(step) as step, max(examples) as examples
    from measurements where sweep = ? group by all
)
"""


def write_tables(lab: Path, sweep: str, folder: Path) -> None:
    connection = connect(lab)
    for query, name in ((TRIALS, "trials.csv"), (MEASUREMENTS, "measurements.csv")):
        rows = connection.execute(f"select columns(*)::varchar from ({query})", [sweep])
        with (folder / name).open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([column[0] for column in rows.description])
            writer.writerows(rows.fetchall())


def write_confirmed(results: SweepResults, folder: Path) -> int:
    """Write one row for each replicate and return how many there are; no file where there are none."""
    made = [(result.batch_size, result.confirmation) for result in results.results if result.confirmation]
    rows = [{"batch_size": size, **dict(each)} for size, confirmation in made for each in confirmation.replicates]
    if rows:
        with (folder / "confirmed.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return len(rows)


def draw_figures(summary: WorkloadSummary, stem: Path) -> None:
    steps, best = plots.steps_curve_data(summary, published=True), plots.metaparameters_data(summary)
    plots.save(plots.steps_curve_figure(steps), steps, stem.with_name(f"{stem.name}-steps-to-result"))
    plots.save(plots.metaparameters_figure(best), best, stem.with_name(f"{stem.name}-metaparameters"))


def write_answer(summary: WorkloadSummary, stem: Path) -> None:
    """Draw both figures, write curve.json beside them, and print what a README tells."""
    draw_figures(summary, stem)
    write_json(stem.with_name("curve.json"), curve_json(summary))
    print_answer(summary)


def steps_of_trials(row: StepsToResult) -> str:
    """Return the steps of every complete trial: `5,392, 5,932`, or `878, > 1,063` where one had not met the goal."""
    missed = [f"> {row.end_step:,}"] * (row.num_trials - len(row.reached_steps))
    return ", ".join([*(f"{steps:,}" for steps in sorted(row.reached_steps)), *missed])


def between_published(published: dict[int, float], batch_size: int) -> float | None:
    """Return the published steps between two batch sizes, along a straight line on log axes; None outside, and at one.

    >>> between_published({8: 400, 32: 100}, 16)
    200.0
    """
    sizes = sorted(published)
    place = bisect(sizes, batch_size)
    if batch_size in published or not 0 < place < len(sizes):
        return None
    low, high = sizes[place - 1], sizes[place]
    share = math.log(batch_size / low) / math.log(high / low)
    return round(math.exp((1 - share) * math.log(published[low]) + share * math.log(published[high])), 1)


def print_between(summary: WorkloadSummary) -> None:
    published = published_steps(summary.workload, summary.goal)
    for row in summary.rows:
        between, steps = between_published(published, row.batch_size), row.estimate(summary.headline).value
        if between is not None:
            ratio = f"ratio {steps / between:.2f}" if steps else f"ratio above {row.end_step / between:.2f}"
            print(f"Batch size {row.batch_size:,}: {between:,.0f} steps between the published neighbours, {ratio}.")


def print_answer(summary: WorkloadSummary) -> None:
    published = published_beside(summary)
    table = steps_table(summary, published)
    for cells in (table.header, ["---"] * len(table.header), *table.rows):
        print(f"| {' | '.join(cells)} |")
    sentences = [answer_text(summary), *([published.sentence] if published else []), protocol_text(summary)]
    for sentence in (*sentences, *(f"Note: {warning}" for warning in summary.warnings)):
        print(f"\n{sentence}")
    if min(row.num_trials for row in summary.rows) < MIN_TRIALS:
        print(*("", *(f"Batch size {row.batch_size:,}: {steps_of_trials(row)}." for row in summary.rows)), sep="\n")
    print_between(summary)


def print_cost(lab: Path, sweep: str, results: SweepResults, num_replicates: int) -> None:
    steps, examples, trials = connect(lab).execute(TRAINED, [sweep]).fetchone()
    print(f"\n{trials} trials, {steps:,} steps, {examples:,} examples; {num_replicates} replicates besides.")
    for result in results.results:
        searched = Lab.open(lab).study_folder(sweep, result.batch_size).record().wall_seconds
        parts = {"the search": searched, "the confirmation": confirming_seconds(result)}
        spelled = [f"{spell_seconds(seconds)} for {what}" for what, seconds in parts.items() if seconds is not None]
        if spelled:
            print(f"Batch size {result.batch_size:,}, of one core: {', '.join(spelled)}.")


def confirming_seconds(result: StudyResult) -> float | None:
    """Return the processor time of all replicates; None where there are none, or it is not known of each."""
    replicates = result.confirmation.replicates if result.confirmation else ()
    seconds = [each.wall_seconds for each in replicates if each.wall_seconds is not None]
    return sum(seconds) if replicates and len(seconds) == len(replicates) else None


def main() -> None:
    lab, sweep, spec = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    folder = RESULTS / (sys.argv[4] if len(sys.argv) > 4 else sweep)
    folder.mkdir(parents=True, exist_ok=True)
    results, summary = summarise_sweep(Lab.open(lab), sweep_name=sweep)
    if not (folder / f"{sweep}.toml").exists() or not spec.samefile(folder / f"{sweep}.toml"):
        shutil.copyfile(spec, folder / f"{sweep}.toml")
    write_tables(lab, sweep, folder)
    write_answer(summary, folder / sweep)
    print_cost(lab, sweep, results, write_confirmed(results, folder))


if __name__ == "__main__":
    main()
