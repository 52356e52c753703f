"""A confirmation that is taken from another lab, where both have finished the same search."""

from __future__ import annotations

from batchlab.core.confirmation import Confirmation
from batchlab.core.growth import study_changes
from batchlab.core.study import Study
from batchlab.core.sweep import differences
from batchlab.files import is_folder
from batchlab.run.finished import is_confirmed
from batchlab.run.stored_outcomes import complete_outcomes
from batchlab.store.study_folder import StudyFolder


def why_left_out(source: StudyFolder, place: StudyFolder) -> str | None:
    """Return why a finished study, or what it has more than another finished one, stays where it is.

    None where nothing stays, also where the study can take the place of one in training, or `take_confirmation` can
    take what it has.
    """
    if source.record().state != "finished":
        return None
    if place.record().state != "finished":
        return _why_smaller(source, place)
    theirs, mine = source.confirmation(), place.confirmation()
    if not _study(source).searches_as(_study(place)):
        has_more = (theirs is not None and mine is None) or bool(study_changes(_study(source), _study(place)))
        lines = "; ".join(differences(_study(place).plain(), _study(source).plain()))
        return f"both labs have finished it, and searched differently ({lines})" if has_more else None
    if theirs is None:
        has_begun = mine is None and is_folder(source.confirming.folder) and source.confirming.packs("parts")
        return "its confirmation has only begun; end it there first: batchlab run" if has_begun else None
    if _has_all(mine, theirs):
        return None
    if place.growing.has_record:
        return "it is confirmed, but the study is growing here; end that first: batchlab run"
    if not _has_all(theirs, mine):
        assert mine is not None
        return f"it is confirmed with {_extent(theirs)}, and here with {_extent(mine)}"
    return None


def _why_smaller(source: StudyFolder, place: StudyFolder) -> str | None:
    """Return why a finished study cannot take the place of one in training: a search that is smaller, which lost it."""
    mine, theirs = _study(place), _study(source)
    if theirs.searches_as(mine) or study_changes(theirs, mine):
        return None
    lines = "; ".join(differences(theirs.plain(), mine.plain()))
    return f"it has finished a smaller search than is in training here ({lines}); let it grow there first: batchlab run"


def take_confirmation(source: StudyFolder, place: StudyFolder) -> bool:
    """Give a study the confirmation of another folder of it, where that is larger; return whether it was."""
    theirs, mine = source.confirmation(), place.confirmation()
    if theirs is None or _has_all(mine, theirs):
        return False
    place.confirming.make_room()  # while it is there, a kill between two files is no damage
    if not study_changes(_study(place), _study(source)):
        place.save_record(place.record().model_copy(update={"study": _study(source)}))
    place.save_confirmation(theirs, source.replicates())
    if is_confirmed(_study(place), complete_outcomes(place), theirs):
        place.end_confirming()
    return True


def _study(folder: StudyFolder) -> Study:
    study = folder.record().study
    assert study is not None, "an imported study is copied whole"
    return study


def _has_all(one: Confirmation | None, other: Confirmation | None) -> bool:
    """Return whether a confirmation of a search has all replicates of another: as many seeds and points, or more."""
    if one is None or other is None:
        return other is None
    return one.seeds >= other.seeds and len(one.trial_ids) >= len(other.trial_ids)


def _extent(confirmation: Confirmation) -> str:
    points, seeds = len(confirmation.trial_ids), confirmation.seeds
    return f"{seeds} seed{'s' if seeds > 1 else ''} of {points} point{'s' if points > 1 else ''}"
