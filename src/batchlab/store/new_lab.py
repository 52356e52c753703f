"""A lab that a command makes, and removes again where nothing was stored in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from batchlab.errors import InputError, LabLostError
from batchlab.store.lab import Lab


@contextmanager
def lab_to_fill(folder: Path) -> Iterator[Lab]:
    """Hold a lab, a new one where there is none; of that an InputError leaves nothing behind, if nothing is stored."""
    made = _missing_folders(folder)
    is_new = not (folder / "lab.json").exists()
    lab = Lab.create(folder)
    with lab.locked():
        try:
            yield lab
        except LabLostError:  # what lies there now is another's
            raise
        except InputError:
            if is_new:
                _take_back(folder, made)  # while it is held: another command may be about to begin
            raise


def _missing_folders(folder: Path) -> list[Path]:
    """Return which folders there are not yet, the innermost first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _take_back(folder: Path, made: list[Path]) -> None:
    """Remove a lab that nothing was stored in; what else lies there stays."""
    with contextlib.suppress(OSError):
        (folder / "sweeps").rmdir()  # another command may have stored something while this one waited
        for name in ("lab.json", "lock"):
            (folder / name).unlink(missing_ok=True)
        for path in made:
            path.rmdir()
