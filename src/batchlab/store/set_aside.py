"""What of a lab cannot be used is never deleted: it goes to `set-aside/TIME` in the lab, at the place that it had."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from batchlab.files import MOST_JSON_BYTES, is_there, make_folder, read_bounded, write_file, write_json
from batchlab.tidying import free_place, move

SET_ASIDE = "set-aside"


class SetAside:
    """A folder for what is set aside now, made with the first thing that is."""

    def __init__(self, lab: Path) -> None:
        self._lab, self.folder = lab, free_place(lab / SET_ASIDE / _now())
        self._why: list[dict[str, str]] = []

    def take(self, path: Path, problem: str) -> Path | None:
        """Move a file, a folder or a link there, write down why, and return its place; None where there was none."""
        if not is_there(path):
            return None
        place = self._place(path)
        move(path, place)
        self._tell(path, problem)
        return place

    def keep(self, path: Path, problem: str) -> None:
        """Keep a copy of a file that is about to be written anew."""
        write_file(self._place(path), read_bounded(path, MOST_JSON_BYTES))
        self._tell(path, problem)

    def _place(self, path: Path) -> Path:
        place = free_place(self.folder / path.relative_to(self._lab))
        make_folder(place.parent)
        return place

    def _tell(self, path: Path, problem: str) -> None:
        self._why.append({"path": str(path.relative_to(self._lab)), "problem": problem})
        write_json(self.folder / "why.json", self._why)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S")
