"""Opening a study to fill it: a new one, one that was interrupted, or a finished one that grows.

A study grows by replay: the race is run again from the outcomes that are there, as if it had been begun at the new
size. Trials that have not trained far enough for it train on, the others are not touched.
"""

from __future__ import annotations

from batchlab.core.growth import study_changes
from batchlab.core.study import Study
from batchlab.engine.checks.study import knows_budget
from batchlab.errors import VERIFY, DamagedError, LabError, SpecError
from batchlab.files import read_bounded, write_file
from batchlab.run.stored_outcomes import confirmed_part, known_parts
from batchlab.search.samplers import draw_points
from batchlab.store.checkpoint import MOST_BYTES
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
    """Raise SpecError where a budget would grow that the schedule depends on: its trials would have been others."""
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
            f"Go on from Python with run_sweep(..., trainer={trained_by}(...)), or use another lab."
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
            "Give the sweep a new name or another lab."
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
