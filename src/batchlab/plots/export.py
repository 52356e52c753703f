"""Figures as files: SVG, PNG and the numbers they show as CSV, each written whole or not at all."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Protocol

from matplotlib.figure import Figure

import batchlab.plots.style as style
from batchlab.files import write_file


class FigureData(Protocol):
    """What a figure shows: anything that can be put in a table."""

    def table(self) -> list[dict[str, object]]:
        """Return the rows, each by column name."""
        ...


def save(figure: Figure, data: FigureData, stem: Path) -> list[Path]:
    """Write `stem`.svg, `stem`.png (200 dpi) and `stem`.csv and return their paths.

    The same figure gives the same bytes. A file of that name is replaced at once, never left half written.
    """
    contents = {".svg": svg_text(figure).encode(), ".png": _png(figure), ".csv": csv_text(data).encode()}
    paths = [stem.parent / f"{stem.name}{suffix}" for suffix in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        write_file(path, content)
    return paths


def svg_text(figure: Figure) -> str:
    """Return the figure as SVG: letters as paths, so that it needs no font, and no date in it."""
    return _render(figure, "svg", {"Date": None, "Creator": None, "Format": None, "Type": None}).decode()


def csv_text(data: FigureData) -> str:
    """Return the table of `data` as CSV; what is None is left empty."""
    rows = data.table()
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _png(figure: Figure) -> bytes:
    return _render(figure, "png", {"Software": None})


def _render(figure: Figure, file_format: str, metadata: dict[str, str | None]) -> bytes:
    out = io.BytesIO()
    with style.applied():
        figure.savefig(out, format=file_format, metadata=metadata)
    return out.getvalue()
