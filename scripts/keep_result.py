"""Keep a finished sweep under docs/results: its figures and numbers, and on stdout what its README tells.

    .venv/bin/python scripts/keep_result.py LAB SWEEP SPEC.toml [FOLDER]

Writes docs/results/FOLDER, by default named after the sweep: the spec, both figures (SVG, PNG, CSV), curve.json,
trials.csv, measurements.csv and, of a confirmed sweep, confirmed.csv. What was seen, and what it means, is for a person
to write.
"""

from __future__ import annotations

import csv
import shutil
import sys
from pathlib import Path

from batchlab import plots
from batchlab.analysis.summary import WorkloadSummary, curve_json
from batchlab.core.duration import spell_seconds
from batchlab.files import write_json
from batchlab.report import words
from batchlab.report.answers import summarise_sweep
from batchlab.report.tables import published_beside, steps_table
from batchlab.store.lab import Lab, SweepResults
from batchlab.store.query import connect

RESULTS = Path(__file__).parent.parent / "docs" / "results"

TRIALS = """
copy (
    select batch_size, trial_id, status, unnest(metaparameters), columns('^(last_step|diverged_step|round)$')
    from trials where sweep = ? order by batch_size, trial_id
) to '{}'
"""
MEASUREMENTS = """
copy (
    select * exclude (sweep) from measurements where sweep = ? order by batch_size, trial_id, step
) to '{}'
"""
TRAINED = """
select sum(last_step)::bigint as steps, sum(last_step * batch_size)::bigint as examples, count(*) as trials
from trials where sweep = ?
"""


def write_tables(lab: Path, sweep: str, folder: Path) -> None:
    connection = connect(lab)
    for query, name in ((TRIALS, "trials.csv"), (MEASUREMENTS, "measurements.csv")):
        connection.execute(query.format(folder / name), [sweep])


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


def print_facts(lab: Path, sweep: str, summary: WorkloadSummary, num_replicates: int) -> None:
    published = published_beside(summary)
    table = steps_table(summary, published)
    for cells in (table.header, ["---"] * len(table.header), *table.rows):
        print(f"| {' | '.join(cells)} |")
    sentences = [words.answer(summary), *([published.sentence] if published else []), words.protocol(summary)]
    for sentence in (*sentences, *(f"Note: {warning}" for warning in summary.warnings)):
        print(f"\n{sentence}")
    steps, examples, trials = connect(lab).execute(TRAINED, [sweep]).fetchone()
    print(f"\n{trials} trials, {steps:,} steps, {examples:,} examples; {num_replicates} replicates besides.")
    for row in summary.rows:
        seconds = Lab.open(lab).study_folder(sweep, row.batch_size).record().wall_seconds or 0.0
        print(f"Batch size {row.batch_size:,}: {spell_seconds(seconds)} of one core.")


def main() -> None:
    lab, sweep, spec = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    folder = RESULTS / (sys.argv[4] if len(sys.argv) > 4 else sweep)
    folder.mkdir(parents=True, exist_ok=True)
    results, summary = summarise_sweep(Lab.open(lab), sweep_name=sweep)
    shutil.copyfile(spec, folder / f"{sweep}.toml")
    draw_figures(summary, folder / sweep)
    write_json(folder / "curve.json", curve_json(summary))
    write_tables(lab, sweep, folder)
    print_facts(lab, sweep, summary, write_confirmed(results, folder))


if __name__ == "__main__":
    main()
