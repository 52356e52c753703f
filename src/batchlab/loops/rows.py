"""Rows from reports: what a loop tells of one step, in one or several reports, is one row."""

from __future__ import annotations

from batchlab.errors import TrainerError
from batchlab.loops.report import Report


class Rows:
    """Joins the reports of a step. A row is complete once a later step is reported, or the loop has ended.

    A loop that goes on after a stop (`resume`) may report steps again that are known: those stay as they are.
    """

    def __init__(self, metric: str) -> None:
        self._metric = metric
        self._open: Report | None = None
        self._last = -1
        self._reported = -1
        self.names: set[str] = set()

    @property
    def step(self) -> int:
        """The last step that was reported, -1 where none was."""
        return self._reported

    @property
    def has_metric(self) -> bool:
        """Whether the goal's metric was reported at least once."""
        return self._metric in self.names

    def resume(self) -> None:
        """Let the loop report again what it had reported before."""
        self._reported = -1

    def add(self, report: Report) -> Report | None:
        """Take a report; return the row that it completes. TrainerError where its step is before the last one."""
        if report.step < self._reported:
            raise TrainerError(
                f"step {report.step} is reported after step {self._reported}: report steps as they come."
            )
        self._reported = report.step
        self.names |= set(report.metrics)
        if self._open is not None and report.step <= self._open.step:
            if report.step == self._open.step:
                examples = report.examples if self._open.examples is None else self._open.examples
                self._open = Report(report.step, {**report.metrics, **self._open.metrics}, report.offset, examples)
            return None
        complete, self._open = self._open, report if report.step > self._last else None
        return self._closed(complete)

    def ready(self, end: int) -> Report | None:
        """Return the open row where nothing that matters can be added to it: it has the goal's metric and ends."""
        if self._open is None or self._open.step < end or self._metric not in self._open.metrics:
            return None
        complete, self._open = self._open, None
        return self._closed(complete)

    def end(self) -> Report | None:
        """Return the last row: the loop has ended."""
        complete, self._open = self._open, None
        return self._closed(complete)

    def _closed(self, row: Report | None) -> Report | None:
        if row is not None:
            self._last = row.step
        return row
