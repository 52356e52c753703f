"""Opening a study to fill it: a new one, one that was interrupted, or a finished one that grows.

A study grows by replay: the race is run again from the outcomes that are there, as if it had been begun at the new
size. Trials that have not trained far enough for it train on, the others are not touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby

import numpy as np

from batchlab.core.confirmation import replicate_id
from batchlab.core.growth import study_changes
from batchlab.core.measurement import Measurements
from batchlab.core.study import Study
from batchlab.core.trial import Status, Trial
from batchlab.engine.checks.check import knows_budget
from batchlab.errors import VERIFY, DamagedError, LabError, SpecError
from batchlab.files import read_bounded, write_file
from batchlab.run.part import Part
from batchlab.search.race import Outcome
from batchlab.search.samplers import draw_points
from batchlab.store.checkpoint import MOST_BYTES
from batchlab.store.consistency import check_outcome
from batchlab.store.pack_name import BEFORE
from batchlab.store.seal import damaged
from batchlab.store.study_folder import StudyFolder
from batchlab.store.study_record import StudyRecord

MOST_TOGETHER = 100_000
"""Trials of a pack at the most, where a spec does not ask for more."""


def open_study(
    study: Study,
    home: StudyFolder,
    trainer: str | None = None,
    sweep: str | None = None,
    *,
    changed_code: bool = False,
) -> StudyFolder:
    """Return the folder in which a study is to be filled, with its record: its own, or `growing` where it grows.

    `trainer` is the class, or the file, of a trainer of the user's own: the study is not gone on with by another,
    unless `changed_code` says that this is meant. `sweep` is the digest of what cannot grow in the study's spec.
    """
    home.settle()
    if not home.has_begun():
        points = tuple(draw_points(study))
        home.save_record(StudyRecord(study=study, points=points, trainer=trainer, sweep=sweep))
        return home
    check_stored(home, study)
    if home.growing.has_record:
        check_stored(home.growing, study)
    if changed_code and trainer is not None:
        home.save_record(home.record().model_copy(update={"trainer": trainer}))
    check_same_trainer(home, trainer)
    if home.record().state == "running":
        return _renewed(home, study)
    if _searched(home).searches_as(study):
        return _renewed(home, study)
    growing = home.growing
    if not growing.has_record:
        _begin_growing(home)
    elif growing.record().state == "finished" and not _searched(growing).searches_as(study):
        _search_further(growing)
    return _renewed(growing, study)


def check_stored(folder: StudyFolder, study: Study) -> None:
    """Raise DamagedError where a stored study is not the one asked for or less of it, or has other points or packs."""
    path, record = folder.folder / "study.json", folder.record()
    folder.check_listed(record.state, record.files or {})
    if record.study is None or record.study.fingerprint != study.fingerprint:
        raise damaged(path, "it is of another study than its sweep's")
    if changes := study_changes(record.study, study):
        raise damaged(path, f"it asks for more than its sweep: {'; '.join(changes)}")
    if record.points != tuple(draw_points(record.study)):
        raise DamagedError(
            f"The points of {path} cannot be continued: drawn again, they come out differently. {VERIFY}"
        )
    if (record.pack_size or 1) > _most_together(study):
        raise damaged(path, f"its pack_size is {record.pack_size}")


def _most_together(study: Study) -> int:
    wanted = study.engine.get("pack_size", "auto")
    return MOST_TOGETHER if wanted == "auto" else max(MOST_TOGETHER, int(wanted))


def check_budget(home: StudyFolder, study: Study) -> None:
    """Raise SpecError where a budget would grow that the schedule has been told: its trials would have been others."""
    stored = home.record().study if home.has_record else None
    if stored is not None and stored.max_steps != study.max_steps and knows_budget(study):
        raise SpecError(
            f"{home.folder} was begun with a budget of {stored.max_steps:,} steps, now {study.max_steps:,}, and its "
            "schedule goes by the budget: trials of another one are other trials. Change it back, or give the sweep a "
            "new name (--set name=NAME)."
        )


def check_same_trainer(home: StudyFolder, trainer: str | None) -> None:
    """Raise LabError where a study was trained by another than this trainer; None is batchlab's own."""
    trained_by = home.record().trainer
    if trained_by not in (None, trainer):
        if trainer is not None and trainer.partition(" (")[0] == trained_by.partition(" (")[0]:
            raise LabError(
                f"{home.folder} was trained by {trained_by}, and that file has changed since: {trainer}. Change it "
                "back, give the sweep a new name, or go on with the changed file: --changed-code (changed_code=True)."
            )
        given = f"not by {trainer}" if trainer else "and batchlab's own trainer would train something else"
        raise LabError(
            f"{home.folder} was trained by {trained_by}, {given}. "
            f"Go on from Python with run_sweep(..., trainer={trained_by}(...)), or use another --lab."
        )


def _searched(folder: StudyFolder) -> Study:
    study = folder.record().study
    assert study is not None, "an imported sweep is never run"
    return study


def _renewed(folder: StudyFolder, study: Study) -> StudyFolder:
    """Write what is asked now into the record, with as many points as that needs; those there are stay as they are."""
    record = folder.record()
    if record.study == study:
        return folder
    points = tuple(draw_points(study))
    if points[: len(record.points)] != record.points:
        raise LabError(
            f"The points of {folder.folder} cannot be continued: drawn again, they come out differently. "
            "Give the sweep a new name or another --lab."
        )
    folder.save_record(record.model_copy(update={"study": study, "points": points}))
    return folder


def _begin_growing(home: StudyFolder) -> None:
    """Copy what the study knows to where it grows; its record comes last, so that a kill begins this anew."""
    growing = home.growing
    growing.clear()
    for path in home.packs("states"):
        write_file(growing.folder / "states" / path.name, read_bounded(path, MOST_BYTES))
    _keep_known(home, growing)


def _search_further(growing: StudyFolder) -> None:
    """Open a search again that had ended in `growing`, not yet confirmed, before still more was asked for."""
    _keep_known(growing, growing)
    growing.forget_outcome()


def _keep_known(source: StudyFolder, growing: StudyFolder) -> None:
    """Write what a searched study knows as parts of the one that grows, and then its record, as of one that runs."""
    record, confirmed = source.record(), confirmed_part(source)
    growing.make_room()
    for index, part in enumerate(known_parts(source)):
        growing.save_part(f"{BEFORE}-{index}", part.measurements, part.record(), record.fingerprint)
    if confirmed is not None:
        growing.confirming.make_room()
        growing.confirming.save_part(BEFORE, confirmed.measurements, confirmed.record(), record.fingerprint)
    growing.save_record(record.begun_anew())


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
    a complete trial where examples are limited: it trained to that end, or had none left before it.
    """
    study, curve = record.study, rows.curve(trial.trial_id)
    assert study is not None and record.end_step is not None
    met = curve.steps[study.goal.is_met(curve.metrics[study.goal.metric])] if len(curve.steps) else curve.steps
    goal_step = int(met[0]) if len(met) else None
    last_row = int(curve.steps[-1]) if len(curve.steps) else 0
    is_limited = study.max_examples is not None and trial.status is Status.COMPLETE
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
