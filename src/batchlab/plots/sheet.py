"""The panels of a figure side by side, under one caption."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from batchlab.plots.panel import Panel


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """Everything a figure of several panels shows."""

    caption: str
    columns: int
    panel_aspect: float
    """Width over height of a panel."""

    panels: tuple[Panel, ...]
    width: float = 9.0
    """Inches; those of the paper's figures."""

    @property
    def heading(self) -> str:
        """The words above the panels."""
        return self.caption

    def table(self) -> list[dict[str, object]]:
        """Return the rows of the CSV file: one for each mark, and one for each note."""
        return [row for panel in self.panels for row in (*_marks(panel), *_notes(panel))]


def _marks(panel: Panel) -> Iterator[dict[str, object]]:
    for series in panel.series:
        for point in series.points:
            yield {
                "panel": panel.name,
                "title": panel.title,
                "series": series.label,
                "kind": series.kind,
                "workload": series.workload,
                "quantity": series.quantity,
                "x": point.x,
                "y": point.y,
                "low": point.low,
                "high": point.high,
                "num_trials": point.num_trials,
                "note": None,
            }


def _notes(panel: Panel) -> Iterator[dict[str, object]]:
    empty = dict.fromkeys(["series", "kind", "workload", "quantity", "x", "y", "low", "high", "num_trials"])
    for note in panel.notes:
        yield {"panel": panel.name, "title": panel.title, **empty, "note": note}
