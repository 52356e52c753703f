"""Answer a kept result again from its own files, with the analysis as it is now.

    .venv/bin/python scripts/answer_again.py docs/results/FOLDER ...

Reads the spec, trials.csv, measurements.csv and confirmed.csv of a folder that keep_result.py wrote, draws both figures
again, writes curve.json again, and prints what its README tells. No lab is needed.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from keep_result import write_answer

from batchlab.core.confirmation import Confirmation, Replicate
from batchlab.core.measurement import Curve, Measurements
from batchlab.core.result import StudyResult
from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.core.trial import Status, Trial
from batchlab.report.answers import summarise
from batchlab.search.confirm import end_of_replicates
from batchlab.spec.load import load_sweep
from batchlab.store.consistency import steps_to_goal
from batchlab.store.study_record import StudyRecord

Row = dict[str, str]
_OF_A_TRIAL = {"batch_size", "trial_id", "status", "last_step", "diverged_step", "round"}
_OF_A_ROW = {"batch_size", "trial_id", "step", "examples"}


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
        (spec,) = folder.glob("*.toml")
        sweep = load_sweep(str(spec))
        summary = summarise(read_results(folder, sweep), sweep.search.hardest_goal)
        print(f"\n{folder}:\n")
        write_answer(summary, folder / sweep.name)


def read_results(folder: Path, sweep: Sweep) -> Iterator[StudyResult]:
    """Return the finished studies that the tables of a folder tell of."""
    trials, measurements, replicates = (
        _by_batch_size(folder / name) for name in ("trials.csv", "measurements.csv", "confirmed.csv")
    )
    for study in sweep.studies():
        if study.batch_size in trials:
            found = [_trial(row) for row in trials[study.batch_size]]
            end_step = max(trial.last_step for trial in found)
            record = StudyRecord(study=study, end_step=end_step)
            searched = record.result(found, _measurements(measurements[study.batch_size]))
            made = _confirmation(study, searched, replicates.get(study.batch_size, []))
            yield replace(searched, confirmation=made)


def _by_batch_size(path: Path) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                found.setdefault(int(row["batch_size"]), []).append(row)
    return found


def _trial(row: Row) -> Trial:
    return Trial(
        trial_id=int(row["trial_id"]),
        status=Status(row["status"]),
        metaparameters={name: float(value) for name, value in row.items() if value and name not in _OF_A_TRIAL},
        last_step=int(row["last_step"]),
        diverged_step=int(row["diverged_step"]) if row.get("diverged_step") else None,
        round=int(row["round"]),
    )


def _measurements(rows: list[Row]) -> Measurements:
    curves: dict[int, list[Row]] = {}
    for row in rows:
        curves.setdefault(int(row["trial_id"]), []).append(row)
    return Measurements.of([_curve(trial_id, found) for trial_id, found in curves.items()])


def _curve(trial_id: int, rows: list[Row]) -> Curve:
    metrics = [name for name in rows[0] if name not in _OF_A_ROW]
    return Curve(
        trial_id,
        np.array([int(row["step"]) for row in rows]),
        {name: np.array([float(row[name] or "nan") for row in rows]) for name in metrics},
        np.array([int(row["examples"]) for row in rows]) if "examples" in rows[0] else None,
    )


def _confirmation(study: Study, searched: StudyResult, rows: list[Row]) -> Confirmation | None:
    fewest_steps = steps_to_goal(searched, study.goal)
    if not rows or study.confirm is None or fewest_steps is None:
        return None
    replicates = [
        Replicate(
            trial_id=int(row["trial_id"]),
            replicate=int(row["replicate"]),
            goal_step=int(row["goal_step"]) if row["goal_step"] else None,
            last_step=int(row["last_step"]),
            diverged_step=int(row["diverged_step"]) if row["diverged_step"] else None,
        )
        for row in rows
    ]
    return Confirmation(
        goal=study.goal,
        seeds=study.confirm.seeds,
        trial_ids=tuple(dict.fromkeys(each.trial_id for each in replicates)),
        end_step=end_of_replicates(study, fewest_steps),
        replicates=tuple(replicates),
    )


if __name__ == "__main__":
    main()
