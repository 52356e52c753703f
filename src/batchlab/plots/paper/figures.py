"""The table of all figures of the paper's main text, and what they show of a lab.

Two labelling slips of the authors' notebook are put right: the x axis of Figures 9 and 10 is the learning rate, not
the batch size, and the second row of Figure 11 is Fashion MNIST, not MNIST. Figure 8 uses the goal 0.1 for Fashion
MNIST, as Figure 1 does; the notebook has 0.3 there, probably a slip.
"""

from __future__ import annotations

from batchlab.analysis.text import count
from batchlab.errors import InputError
from batchlab.plots.panel import Panel
from batchlab.plots.paper.figure import PaperFigure, PaperFigureData
from batchlab.plots.paper.figure_7 import FIGURE_7
from batchlab.plots.paper.figure_8 import FIGURE_8
from batchlab.plots.paper.figure_11 import FIGURE_11
from batchlab.plots.paper.figures_1_to_6 import FIGURE_1, FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_6
from batchlab.plots.paper.figures_9_and_10 import FIGURE_9, FIGURE_10
from batchlab.plots.paper.lines import NOT_HERE, LatestResults, Results

PAPER_FIGURES: dict[int, PaperFigure] = {
    1: FIGURE_1,
    2: FIGURE_2,
    3: FIGURE_3,
    4: FIGURE_4,
    5: FIGURE_5,
    6: FIGURE_6,
    7: FIGURE_7,
    8: FIGURE_8,
    9: FIGURE_9,
    10: FIGURE_10,
    11: FIGURE_11,
}


def paper_data(number: int, results: Results, *, published: bool = False) -> PaperFigureData:
    """Return what Figure `number` (1 to 11) of the paper shows of a lab.

    `results` gives the studies of a workload by its name, or None; it is asked for one workload after another, and no
    more than one is held at a time. A workload that is not there leaves its place empty, with a note that says so;
    InputError where that leaves no curve at all. `published` adds the published points of every curve that is drawn.

    >>> from batchlab.analysis import example_workload
    >>> data = paper_data(1, lambda workload: example_workload() if workload.startswith("fashion_mnist/") else None)
    >>> data.panels[0].notes
    ('mnist/simple_cnn_base/nesterov_momentum is not in this lab',)
    """
    if number not in PAPER_FIGURES:
        raise InputError(f"The paper has no Figure {number}. Choose 1 to {max(PAPER_FIGURES)}.")
    figure = PAPER_FIGURES[number]
    latest = LatestResults(results)
    panels = tuple(
        panel.data(name, latest, published) for name, panel in zip(figure.names, figure.panels, strict=False)
    )
    if not any(panel.series for panel in panels):
        raise InputError(_nothing(number, panels))
    return PaperFigureData(
        number=number,
        caption=" ".join([figure.caption, *_trials(panels)]),
        columns=figure.columns,
        panel_aspect=figure.panel_aspect,
        panels=panels,
    )


def _trials(panels: tuple[Panel, ...]) -> list[str]:
    """Return the sentence on how many trials stand behind the measured points, as a list of none or one."""
    numbers = [point.num_trials for panel in panels for series in panel.of_kind("measured") for point in series.points]
    known = [number for number in numbers if number is not None]
    if not known:
        return []
    fewest, most = count(min(known)), count(max(known))
    if fewest != most:
        return [f"n = {fewest} to {most} trials."]
    return ["n = 1 trial." if fewest == "1" else f"n = {fewest} trials."]


def _nothing(number: int, panels: tuple[Panel, ...]) -> str:
    """Return why no panel has a curve, and what it takes."""
    needs = " or ".join(PAPER_FIGURES[number].needs)
    notes = list(dict.fromkeys(note for panel in panels for note in panel.notes))
    if all(note.endswith(NOT_HERE) for note in notes):
        return (
            f"Figure {number} of the paper needs a workload that this lab does not have, {needs}. Run it (`batchlab "
            "run paper:NAME`), or import the paper's archive."
        )
    others = "; ".join(note for note in notes if not note.endswith(NOT_HERE))
    return f"Figure {number} of the paper has nothing to show of this lab: {others}."
