"""What of a lab cannot be used is never deleted: it goes to `set-aside/TIME` in the lab, at the place that it had."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from batchlab.files import is_there, make_folder, write_json
from batchlab.folders import move

SET_ASIDE = "set-aside"


class SetAside:
    """A folder for what is set aside now, made with the first thing that is."""

    def __init__(self, lab: Path) -> None:
        self._lab, self.folder = lab, _free_folder(lab / SET_ASIDE)
        self._why: list[dict[str, str]] = []

    def take(self, path: Path, problem: str) -> bool:
        """Move a file, a folder or a link there, and write down why; return whether there was one."""
        if not is_there(path):
            return False
        place = self.folder / path.relative_to(self._lab)
        make_folder(place.parent)
        move(path, place)
        self._why.append({"path": str(path.relative_to(self._lab)), "problem": problem})
        write_json(self.folder / "why.json", self._why)
        return True


def _free_folder(folder: Path) -> Path:
    """Return a folder that is not there: named by the time, and by a number where there is one already."""
    now = datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S")
    names = (now if number == 1 else f"{now}-{number}" for number in count(1))
    return next(folder / name for name in names if not is_there(folder / name))
