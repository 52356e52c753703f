"""What a finished study knows, read back as a run deals with it: outcomes and parts of its trials and replicates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby

import numpy as np

from batchlab.core.confirmation import replicate_id
from batchlab.core.measurement import Measurements
from batchlab.core.trial import Status, Trial
from batchlab.run.part import Part
from batchlab.search.race import Outcome
from batchlab.store.consistency import check_outcome
from batchlab.store.study_folder import StudyFolder
from batchlab.store.study_record import StudyRecord


def known_parts(folder: StudyFolder) -> Iterator[Part]:
    """Yield what a finished study knows of its trials, and of those that it keeps aside, as parts."""
    record, trials, result = folder.record(), folder.trials(), folder.result()
    check_outcome(folder.folder, record, result)
    rows = result.measurements
    assert record.study is not None and record.end_step is not None
    is_on_grid = record.study.evaluation.includes(rows.step)  # that at the end of a budget may lie off the grid
    if record.study.max_examples is not None:  # a budget of examples stays, and so does the row at its end
        is_on_grid |= rows.step < record.study.max_steps
    rows = rows.where(is_on_grid)

    def place(trial: Trial) -> str:
        return json.dumps(trial.environment, sort_keys=True)

    groups = [list(group) for _, group in groupby(sorted(trials, key=place), key=place)]
    for index, group in enumerate(groups):
        trained = record.trained_steps or 0 if index == 0 else 0
        outcomes = tuple(_outcome(record, trial, rows) for trial in sorted(group, key=lambda t: t.trial_id))
        ids = [trial.trial_id for trial in group]
        seconds = sum(trial.wall_seconds or 0.0 for trial in group)
        part = rows.where(np.isin(rows.trial_id, ids))
        yield Part(part, outcomes, trained, seconds, group[0].environment)
    aside = folder.aside()
    if aside is not None:
        yield Part.read(*aside, record.study)


def complete_outcomes(folder: StudyFolder) -> list[Outcome]:
    """Return the outcomes of the complete trials of a finished search."""
    record, result = folder.record(), folder.result()
    check_outcome(folder.folder, record, result)
    return [_outcome(record, trial, result.measurements) for trial in result.first_complete()]


def _outcome(record: StudyRecord, trial: Trial, rows: Measurements) -> Outcome:
    """Return what is known of a stored trial: as far as its rows go, and whether it diverged there.

    A loop of the user's own is known to the end of its race: its last row lies where it last reported before. And so is
    a complete trial where examples are limited, if its last row is among `rows`: it trained to that end, or had none
    left before it.
    """
    study, curve = record.study, rows.curve(trial.trial_id)
    assert study is not None and record.end_step is not None
    met = curve.steps[study.goal.is_met(curve.metrics[study.goal.metric])] if len(curve.steps) else curve.steps
    goal_step = int(met[0]) if len(met) else None
    last_row = int(curve.steps[-1]) if len(curve.steps) else 0
    is_limited = study.max_examples is not None and trial.status is Status.COMPLETE and last_row == trial.last_step
    if study.workload.is_own_loop or is_limited:
        last_row = record.end_step
    if trial.status is not Status.INFEASIBLE or trial.diverged_step is None:
        return Outcome(trial.trial_id, last_row, goal_step)
    # Its curve may have been cut, at the end of the race, before the step at which it diverged.
    is_whole = study.evaluation.first_step_from(last_row + 1) >= trial.diverged_step
    return Outcome(trial.trial_id, trial.diverged_step if is_whole else last_row, goal_step, trial.diverged_step)


def confirmed_part(folder: StudyFolder) -> Part | None:
    """Return the replicates of a confirmed study as a part, by their numbers."""
    record = folder.record()
    confirmation = folder.confirmation(record)
    if confirmation is None or not confirmation.replicates:
        return None
    outcomes = tuple(
        Outcome(replicate_id(each.trial_id, each.replicate), each.last_step, each.goal_step, each.diverged_step)
        for each in confirmation.replicates
    )
    seconds = sum(each.wall_seconds or 0.0 for each in confirmation.replicates)
    rows = folder.replicates().counted(record.facts.batch_size)
    return Part(rows, outcomes, sum(each.last_step for each in outcomes), seconds, {})
