"""Figures by name: what each is made from, how its numbers are computed and how they are drawn.

A new figure is one more entry: the command line and its errors read this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure as Picture

from batchlab.errors import InputError, shown, unknown_name
from batchlab.plots.budgets import budgets_data, budgets_figure
from batchlab.plots.compare import compare_data, compare_figure
from batchlab.plots.curves import MOST_CURVES, curves_data, curves_figure
from batchlab.plots.draw import draw_sheet
from batchlab.plots.export import FigureData, save
from batchlab.plots.metaparameters import metaparameters_data, metaparameters_figure
from batchlab.plots.paper.figures import PAPER_FIGURES, paper_data
from batchlab.plots.plan import plan_data, plan_figure
from batchlab.plots.points import MOST_PANELS, points_data, points_figure
from batchlab.plots.steps_curve import steps_curve_data, steps_curve_figure
from batchlab.plots.throughput import throughput_data, throughput_figure

Needs = Literal["sweep", "trials", "sweeps", "lab", "plan", "throughput"]
"""`sweep`: the summary of one; `trials`: one as a `TrainedSweep`, with its curves; `sweeps`: summaries by name;
`lab`: a function from a workload's name to its studies; `plan`: the training plan of one; `throughput`: its step
times."""

Option = Literal["published", "metric", "against"]
"""What the numbers of some figures can be asked for: keyword arguments of their `data`."""

PAPER_ALL = "paper-all"
"""Stands for all figures of the paper."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure before it meets a lab."""

    name: str
    needs: Needs
    data: Callable[..., FigureData]
    """Called with what it `needs`, and with the options that it `takes`."""

    draw: Callable[[Any], Picture]
    takes: frozenset[Option] = frozenset()
    most_batch_sizes: int | None = None
    """Of a figure whose batch sizes can be chosen: how many it shows where none is named."""

    reads: Mapping[str, list[str]] = field(default_factory=dict)
    """Of a figure of a whole lab: the workloads it is made of, and which metrics of them."""


def _paper_figure(number: int) -> Figure:
    return Figure(
        name=f"paper-{number}",
        needs="lab",
        data=partial(paper_data, number),
        draw=draw_sheet,
        takes=frozenset({"published"}),
        reads=PAPER_FIGURES[number].needs,
    )


_OURS = (
    Figure(
        name="steps-to-result",
        needs="sweep",
        data=steps_curve_data,
        draw=steps_curve_figure,
        takes=frozenset({"published"}),
    ),
    Figure(
        name="metaparameters",
        needs="sweep",
        data=metaparameters_data,
        draw=metaparameters_figure,
    ),
    Figure(
        name="curves",
        needs="trials",
        data=curves_data,
        draw=curves_figure,
        takes=frozenset({"metric", "against"}),
        most_batch_sizes=MOST_CURVES,
    ),
    Figure(
        name="points",
        needs="trials",
        data=points_data,
        draw=points_figure,
        most_batch_sizes=MOST_PANELS,
    ),
    Figure(
        name="budgets",
        needs="trials",
        data=budgets_data,
        draw=budgets_figure,
    ),
    Figure(
        name="compare",
        needs="sweeps",
        data=compare_data,
        draw=compare_figure,
        takes=frozenset({"published"}),
    ),
    Figure(
        name="plan",
        needs="plan",
        data=plan_data,
        draw=plan_figure,
    ),
    Figure(
        name="throughput",
        needs="throughput",
        data=throughput_data,
        draw=throughput_figure,
    ),
    *(_paper_figure(number) for number in PAPER_FIGURES),
)
FIGURES = {figure.name: figure for figure in _OURS}


def register(figure: Figure) -> None:
    """Add a figure from outside; InputError where its name is taken by another."""
    if figure.name == PAPER_ALL or FIGURES.get(figure.name, figure) != figure:
        raise InputError(f"There is already a figure {shown(figure.name)}: give yours another name.")
    FIGURES[figure.name] = figure


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


def save_figure(name: str, source: object, stem: Path, **options: object) -> list[Path]:
    """Draw a figure of `source`, what the figure `needs`, as `stem`.svg, .png and .csv, and return their paths.

    `options` are among those that the figure `takes`.
    """
    figure = FIGURES[name]
    data = figure.data(source, **options)
    return save(figure.draw(data), data, stem)
