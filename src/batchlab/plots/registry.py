"""Figures by name: what each is made from, how its numbers are computed and how they are drawn.

A new figure is one more entry: the command line, its errors and the documentation read this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure as Picture

from batchlab.errors import InputError, unknown_name
from batchlab.plots.compare import compare_data, compare_figure
from batchlab.plots.draw import draw_sheet
from batchlab.plots.export import FigureData, save
from batchlab.plots.metaparameters import metaparameters_data, metaparameters_figure
from batchlab.plots.paper.figures import PAPER_FIGURES, paper_data
from batchlab.plots.steps_curve import steps_curve_data, steps_curve_figure

Needs = Literal["sweep", "sweeps", "lab"]
"""`sweep`: the summary of one; `sweeps`: summaries by name; `lab`: a function from a workload's name to its studies."""

PAPER_ALL = "paper-all"
"""Stands for all figures of the paper."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure before it meets a lab."""

    about: str
    """What it shows, in a line."""

    needs: Needs
    data: Callable[..., FigureData]
    """Called with what it `needs`, and with `published` where it takes that."""

    draw: Callable[[Any], Picture]
    takes_published: bool = False
    """Whether published points can be laid over it."""

    reads: Mapping[str, list[str]] = field(default_factory=dict)
    """Of a figure of a whole lab: the workloads it is made of, and which metrics of them."""


def _paper_figure(number: int) -> Figure:
    return Figure(
        about=f"Figure {number} of the paper: {PAPER_FIGURES[number].caption}",
        needs="lab",
        data=partial(paper_data, number),
        draw=draw_sheet,
        takes_published=True,
        reads=PAPER_FIGURES[number].needs,
    )


FIGURES: dict[str, Figure] = {
    "steps-to-result": Figure(
        about="Steps to the goal against batch size, with intervals, perfect scaling, fit and regimes.",
        needs="sweep",
        data=steps_curve_data,
        draw=steps_curve_figure,
        takes_published=True,
    ),
    "metaparameters": Figure(
        about="The best metaparameters against batch size, beside two rules of thumb.",
        needs="sweep",
        data=metaparameters_data,
        draw=metaparameters_figure,
    ),
    "compare": Figure(
        about="Steps to one goal against batch size, of several sweeps.",
        needs="sweeps",
        data=compare_data,
        draw=compare_figure,
        takes_published=True,
    ),
    **{f"paper-{number}": _paper_figure(number) for number in PAPER_FIGURES},
}


def figure_names(name: str) -> list[str]:
    """Return the figures that a name stands for, one or all of the paper's; InputError for a name that is not known.

    >>> figure_names("compare"), len(figure_names("paper-all"))
    (['compare'], 11)
    """
    if name == PAPER_ALL:
        return [f"paper-{number}" for number in PAPER_FIGURES]
    if name not in FIGURES:
        raise InputError(unknown_name("figure", name, [*FIGURES, PAPER_ALL]))
    return [name]


def save_figure(name: str, source: object, stem: Path, *, published: bool = False) -> list[Path]:
    """Draw a figure of `source`, what the figure `needs`, as `stem`.svg, .png and .csv, and return their paths."""
    figure = FIGURES[name]
    data = figure.data(source, published=published) if figure.takes_published else figure.data(source)
    return save(figure.draw(data), data, stem)
