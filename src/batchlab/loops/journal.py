"""What is kept of a loop's trial while it trains: every report, as soon as it is read.

A loop that keeps a checkpoint may be further than any moment at which we could have written one of our own. So each
report is written down before the loop is asked, or read, for the next.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from batchlab.core.study import Study
from batchlab.errors import BatchlabError
from batchlab.files import is_folder, is_there, make_folder, write_file
from batchlab.loops.base import checkpoint_folder
from batchlab.loops.report import Report, make_report
from batchlab.tidying import remove_if_empty

NAME = "reports.jsonl"


class Journal:
    """The reports of one trial, in a file of JSON lines; the first line says of which trial they are."""

    def __init__(self, place: Path, study: Study, trial_id: int) -> None:
        self._place, self._path = place, place / NAME
        self._head = {"study": study.fingerprint, "trial_id": trial_id}
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """How long the trial has trained, before a stop as well."""
        return time.perf_counter() - self._started

    def reports(self) -> list[Report] | None:
        """Return what is written down; None where there is nothing that this trial can go on from."""
        try:
            lines = self._path.read_text("utf-8").split("\n")
            head, *tables = [json.loads(line) for line in lines[:-1]]  # what follows the last newline was cut by a kill
            if head != self._head:
                return None
            known = [make_report(table["step"], table["metrics"], int(table["offset"])) for table in tables]
            self._started -= float(tables[-1]["seconds"]) if tables else 0.0
            return known
        except (OSError, ValueError, TypeError, LookupError, BatchlabError):
            return None

    def begin(self, known: list[Report]) -> None:
        """Write the file anew; without known reports the trial begins from the start, and its folder is emptied."""
        if not known and is_there(self._place):
            shutil.rmtree(self._place)
        make_folder(checkpoint_folder(self._place))
        lines = [json.dumps(self._head), *(self._line(report) for report in known)]
        write_file(self._path, "".join(f"{line}\n" for line in lines).encode())

    def add(self, report: Report) -> None:
        """Write a report down."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{self._line(report)}\n")

    def close(self) -> None:
        """Remove what only a trial in training needs; what its program has printed stays."""
        self._path.unlink(missing_ok=True)
        if is_folder(checkpoint_folder(self._place)):
            shutil.rmtree(checkpoint_folder(self._place))
        remove_if_empty(self._place)
        remove_if_empty(self._place.parent)

    def _line(self, report: Report) -> str:
        told = {
            "step": report.step,
            "metrics": {"examples": report.examples, **report.metrics},
            "offset": report.offset,
        }
        return json.dumps({**told, "seconds": self.seconds})
