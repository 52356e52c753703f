"""What of a sweep a lab holds already, just as it is asked for: there nothing is left to train."""

from __future__ import annotations

from pathlib import Path

from batchlab.core.confirmation import Confirmation
from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.files import is_there
from batchlab.run.growth import complete_outcomes
from batchlab.search.confirm import points_to_confirm
from batchlab.search.race import Outcome
from batchlab.store.lab import Lab, check_free
from batchlab.store.study_folder import StudyFolder


def as_stored(sweep: Sweep, lab: Path) -> tuple[Sweep, tuple[int, ...]]:
    """Return a sweep as a run in `lab` would train it, and the batch sizes at which nothing is left to do.

    Nothing is written. SpecError where the lab has another sweep of that name, LabError where none can be made.
    """
    if not is_there(lab / "lab.json"):
        check_free(lab)
        return sweep, ()
    store = Lab.open(lab)
    sweep = store.admitted(sweep)
    folders = [(study, store.study_folder(sweep.name, study.batch_size)) for study in sweep.studies()]
    return sweep, tuple(study.batch_size for study, folder in folders if _is_finished(study, folder))


def is_confirmed(study: Study, complete: list[Outcome], confirmation: Confirmation | None) -> bool:
    """Return whether a finished search has the replicates that the study asks for."""
    if confirmation is None or study.confirm is None:
        return study.confirm is None
    wanted = points_to_confirm(study, complete)
    return confirmation.seeds >= study.confirm.seeds and confirmation.trial_ids[: len(wanted)] == wanted


def _is_finished(study: Study, home: StudyFolder) -> bool:
    def look(folder: StudyFolder) -> bool:
        record = folder.record() if folder.has_begun() else None
        if record is None or record.state != "finished" or record.study != study:
            return False
        return not study.num_replicates or is_confirmed(study, complete_outcomes(folder), folder.confirmation(record))

    return home.undisturbed(look)
