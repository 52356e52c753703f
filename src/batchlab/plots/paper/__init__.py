"""The figures of "Measuring the Effects of Data Parallelism on Neural Network Training" (Shallue et al., 2019), redrawn
from any lab that has its workloads: `paper_data` computes the numbers of a figure, `draw_paper` draws them."""

from batchlab.plots.paper.data import Axis, PaperFigureData, PaperPanel, Point, Series
from batchlab.plots.paper.draw import draw_paper
from batchlab.plots.paper.figure import PaperFigure
from batchlab.plots.paper.figures import PAPER_FIGURES, paper_data
from batchlab.published.points import published_steps

__all__ = [
    "PAPER_FIGURES",
    "Axis",
    "PaperFigure",
    "PaperFigureData",
    "PaperPanel",
    "Point",
    "Series",
    "draw_paper",
    "paper_data",
    "published_steps",
]
