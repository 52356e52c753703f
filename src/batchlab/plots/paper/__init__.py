"""The figures of "Measuring the Effects of Data Parallelism on Neural Network Training" (Shallue et al., 2019), redrawn
from any lab that has its workloads: `paper_data` computes the numbers of a figure, `draw_sheet` draws them."""

from batchlab.plots.paper.figure import PaperFigure, PaperFigureData
from batchlab.plots.paper.figures import PAPER_FIGURES, paper_data

__all__ = ["PAPER_FIGURES", "PaperFigure", "PaperFigureData", "paper_data"]
