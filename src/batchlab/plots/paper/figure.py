"""A figure of the paper before it meets a lab: its panels, and what has to be read to draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from batchlab.plots.paper.data import PaperPanel
from batchlab.plots.paper.studies import Results


class Panel(Protocol):
    """What every kind of panel can do."""

    @property
    def title(self) -> str:
        """The words above it."""
        ...

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The workloads and metrics it is made of."""
        ...

    def data(self, name: str, results: Results, published: bool) -> PaperPanel:
        """Return what it shows of a lab, with the published points where they are wanted and known."""
        ...


@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """One figure of the paper."""

    caption: str
    columns: int
    panels: tuple[Panel, ...]
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
