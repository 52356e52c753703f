"""The folder `importing` of a lab, where converted studies wait until all of their archive has been read.

::

    importing/pieces/NUMBER.parquet       a part of a study of a tar file, parsed
    importing/studies/DIGEST/study/       a study as the lab will hold it; the digest is that of its files
    importing/studies/DIGEST/outcome.json what was left out of it; written last
    importing/sweeps/NAME/                a sweep that is about to move to its place

Whatever ends an import but a stop empties it, and takes back a lab that was made for it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from batchlab.errors import InputError, LabLostError
from batchlab.files import make_folder, storage_error, sync_files, sync_path
from batchlab.published.goals import paper_goal
from batchlab.store.archive.admission import SOURCE, Admission, ArchivedSweep
from batchlab.store.lab import Lab
from batchlab.store.new_lab import lab_to_fill
from batchlab.store.seal import write_sealed
from batchlab.store.stored_sweep import ImportRecord
from batchlab.tidying import remove_if_empty

FOLDER = "importing"


@contextmanager
def open_import_folder(folder: Path) -> Iterator[ImportFolder]:
    """Hold a lab, a new one where there is none, and its import folder; an InputError leaves neither behind."""
    with lab_to_fill(folder) as lab:
        importing = ImportFolder(lab)
        try:
            yield importing
        except LabLostError:  # what lies there now is another's
            raise
        except InputError:
            importing.clear()
            raise
        importing.clear()


class ImportFolder:
    """What waits in a lab that is held."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.folder = lab, lab.folder / FOLDER
        for path in (self.folder, lab.folder / "sweeps"):
            if path.is_symlink() or (path.exists() and not path.is_dir()):
                raise InputError(f"{path} is no folder of a lab. Nothing was imported; remove it, or use another lab.")
            make_folder(path)
        for name in ("pieces", "sweeps"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            make_folder(self.folder / name)

    def piece(self, number: int) -> Path:
        """Return where a piece of a study waits."""
        return self.folder / "pieces" / f"{number}.parquet"

    def clear(self) -> None:
        """Remove all that waits; what a user has put there stays."""
        for name in ("pieces", "studies", "sweeps"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        remove_if_empty(self.folder)

    def put(self, admission: Admission, source: Mapping[str, Any]) -> None:
        """Let the studies of a sweep that the lab lacks move to their place, and list the sweep."""
        sweep, place = admission.sweep, self.lab.folder / "sweeps" / admission.sweep.name
        sync_files(folder for size, folder in sweep.studies.items() if admission.is_new or size in admission.missing)
        if not admission.is_new:
            for size in admission.missing:
                _fill(place / str(size), sweep.studies[size])
            _list(self.lab, sweep, source)
            return
        waiting = self.folder / "sweeps" / sweep.name
        make_folder(waiting)
        for size, folder in sweep.studies.items():
            _move(folder, waiting / str(size))
        _list(Lab(self.folder), sweep, source)
        sync_path(waiting)
        _move(waiting, place)


def _fill(place: Path, waiting: Path) -> None:
    """Put the files of a study where there is none, its study.json last."""
    make_folder(place)
    for path in sorted(waiting.iterdir(), key=lambda path: path.name == "study.json"):
        _move(path, place / path.name)


def _move(path: Path, place: Path) -> None:
    try:
        path.rename(place)
        sync_path(place.parent)
    except OSError as error:
        raise storage_error(place, error) from error


def _list(lab: Lab, sweep: ArchivedSweep, source: Mapping[str, Any]) -> None:
    """Make a sweep visible in the lab that holds its studies, unless it is."""
    folder = lab.folder / "sweeps" / sweep.name
    if sweep.spec is not None:
        if not (folder / "sweep.json").exists():
            write_sealed(folder / SOURCE, dict(source))
            lab.save_spec(sweep.spec)
        return
    goal, sizes = paper_goal(sweep.workload), tuple(sorted(sweep.studies))
    if not (folder / "import.json").exists():
        lab.save_import(
            ImportRecord(name=sweep.name, workload=sweep.workload, batch_sizes=sizes, goal=goal, source=dict(source))
        )
