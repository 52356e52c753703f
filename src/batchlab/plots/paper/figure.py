"""A figure of the paper: its panels and what has to be read to draw them, and what it shows of a lab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from batchlab.plots.panel import Panel
from batchlab.plots.paper.lines import Results
from batchlab.plots.sheet import Sheet


class PaperPanel(Protocol):
    """A panel before it meets a lab: what every kind of it can do."""

    @property
    def title(self) -> str:
        """The words above it."""
        ...

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The workloads and metrics it is made of."""
        ...

    def data(self, name: str, results: Results, published: bool) -> Panel:
        """Return what it shows of a lab, with the published points where they are wanted and known."""
        ...


@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """One figure of the paper."""

    caption: str
    columns: int
    panels: tuple[PaperPanel, ...]
    names: tuple[str, ...] = tuple("abcdefghi")
    """What its panels are called, in their order."""

    panel_aspect: float = 8 / 7
    """Width over height of a panel."""

    @property
    def needs(self) -> dict[str, list[str]]:
        """The metrics it is made of, by workload: all that has to be read to draw it."""
        found: dict[str, list[str]] = {}
        for panel in self.panels:
            for workload, metric in panel.needs:
                metrics = found.setdefault(workload, [])
                if metric not in metrics:
                    metrics.append(metric)
        return found


@dataclass(frozen=True, kw_only=True)
class PaperFigureData(Sheet):
    """Everything a figure of the paper shows of a lab."""

    number: int

    @property
    def heading(self) -> str:
        """The words above the panels."""
        return f"Figure {self.number}. {self.caption}"

    def table(self) -> list[dict[str, object]]:
        """Return the rows of the CSV file: one for each mark, and one for each note."""
        return [{"figure": self.number, **row} for row in super().table()]
