"""The folder of a sweep in a lab: which file describes it, and which studies lie in it."""

from __future__ import annotations

import re
from pathlib import Path

from batchlab.errors import LabError, UnreadableError
from batchlab.files import TEMPORARY, is_there, names_in
from batchlab.store.study_folder import StudyFolder

_BATCH_SIZE = re.compile(r"[1-9][0-9]{0,17}")


def folder_batch_size(name: str) -> int | None:
    """Return the batch size whose study a folder of this name holds; None for every other name.

    >>> folder_batch_size("64"), folder_batch_size("064"), folder_batch_size("+64"), folder_batch_size("growing")
    (64, None, None, None)
    """
    return int(name) if _BATCH_SIZE.fullmatch(name) else None


def study_places(folder: Path) -> list[Path]:
    """Return what goes by the name of a study in the folder of a sweep, smallest batch size first."""
    sizes = {size: name for name in names_in(folder) if (size := folder_batch_size(name)) is not None}
    return [folder / sizes[size] for size in sorted(sizes)]


def spec_path(folder: Path) -> Path:
    """Return the file that describes a sweep; where it is gone, the one that its studies ask for."""
    spec, imported = folder / "sweep.json", folder / "import.json"
    if is_there(spec):
        return spec
    return imported if is_there(imported) or any(map(_is_imported, study_places(folder))) else spec


def holds_sweep(folder: Path, *, is_sealed: bool) -> bool:
    """Return whether a folder tells of a sweep, or holds a study.

    In a lab of an older format an imported one may be waiting there for the end of its import.
    """
    if folder.suffix == TEMPORARY:
        return False
    if folder.is_symlink() or any(is_there(folder / name) for name in ("sweep.json", "import.json")):
        return True
    studies = (study for study in study_places(folder) if is_there(study / "study.json"))
    return any(is_sealed or not _is_imported(study) for study in studies)


def sweep_folder_of(folder: StudyFolder) -> Path:
    """Return the folder of a study's sweep, wherever in it the study is."""
    above = folder.folder.parent
    return above.parent if above.name in ("growing", "replaced") else above


def _is_imported(study: Path) -> bool:
    try:
        return is_there(study / "study.json") and StudyFolder(study).record().imported is not None
    except UnreadableError:
        raise
    except LabError:
        return False
