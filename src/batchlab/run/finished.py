"""What of a sweep a lab holds already, just as it is asked for: there nothing is left to train."""

from __future__ import annotations

from pathlib import Path

from batchlab.core.confirmation import Confirmation
from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.files import is_there
from batchlab.run.stored_outcomes import complete_outcomes
from batchlab.search.confirm import points_to_confirm
from batchlab.search.race import Outcome, best_steps
from batchlab.store.lab import Lab, check_free
from batchlab.store.study_folder import StudyFolder


def as_stored(sweep: Sweep, lab: Path) -> tuple[Sweep, dict[int, int | None]]:
    """Return a sweep as a run in `lab` would train it, and the batch sizes at which nothing is left to do.

    Each comes with its fewest steps to the goal, None where no trial met it. Nothing is written. SpecError where the
    lab has another sweep of that name, LabError where none can be made.
    """
    if not is_there(lab / "lab.json"):
        check_free(lab)
        return sweep, {}
    store = Lab.open(lab)
    sweep = store.admitted(sweep)
    finished = {}
    for study in sweep.studies():
        outcomes = _finished_outcomes(study, store.study_folder(sweep.name, study.batch_size))
        if outcomes is not None:
            finished[study.batch_size] = best_steps(study, outcomes)
    return sweep, finished


def begun_batch_sizes(sweep: Sweep, lab: Path) -> tuple[int, ...]:
    """Return the batch sizes of which a lab holds something: a part of the search, or all of a smaller one."""
    if not is_there(lab / "lab.json"):
        return ()
    store = Lab.open(lab)
    sizes = sweep.search.batch_sizes
    return tuple(size for size in sizes if store.study_folder(sweep.name, size).has_begun())


def is_confirmed(study: Study, complete: list[Outcome], confirmation: Confirmation | None) -> bool:
    """Return whether a finished search has the replicates that the study asks for."""
    if confirmation is None or study.confirm is None:
        return study.confirm is None
    wanted = points_to_confirm(study, complete)
    return confirmation.seeds >= study.confirm.seeds and confirmation.trial_ids[: len(wanted)] == wanted


def _finished_outcomes(study: Study, home: StudyFolder) -> list[Outcome] | None:
    """Return the complete trials of a study with which nothing is left to do; None of another."""

    def look(folder: StudyFolder) -> list[Outcome] | None:
        record = folder.record() if folder.has_begun() else None
        if record is None or record.state != "finished" or record.study != study:
            return None
        complete = complete_outcomes(folder)
        if study.num_replicates and not is_confirmed(study, complete, folder.confirmation(record)):
            return None
        return complete

    return home.undisturbed(look)
