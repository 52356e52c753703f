"""Figures in two steps: `*_data` computes plain numbers, `*_figure` draws them. Only this room knows matplotlib."""

from matplotlib.figure import Figure

from batchlab.plots.budgets import budgets_data, budgets_figure
from batchlab.plots.compare import CompareData, compare_data, compare_figure
from batchlab.plots.curves import CurvesData, curves_data, curves_figure
from batchlab.plots.draw import draw_sheet
from batchlab.plots.export import save, svg_text
from batchlab.plots.metaparameters import MetaparametersData, metaparameters_data, metaparameters_figure
from batchlab.plots.paper import PAPER_FIGURES, PaperFigureData, paper_data
from batchlab.plots.plan import plan_data, plan_figure
from batchlab.plots.points import PointsData, points_data, points_figure
from batchlab.plots.registry import FIGURES, figure_names, save_figure
from batchlab.plots.sheet import Sheet
from batchlab.plots.steps_curve import StepsCurveData, steps_curve_data, steps_curve_figure
from batchlab.plots.throughput import throughput_data, throughput_figure
from batchlab.plots.trained_sweep import TrainedSweep

__all__ = [
    "FIGURES",
    "PAPER_FIGURES",
    "CompareData",
    "CurvesData",
    "Figure",
    "MetaparametersData",
    "PaperFigureData",
    "PointsData",
    "Sheet",
    "StepsCurveData",
    "TrainedSweep",
    "budgets_data",
    "budgets_figure",
    "compare_data",
    "compare_figure",
    "curves_data",
    "curves_figure",
    "draw_sheet",
    "figure_names",
    "metaparameters_data",
    "metaparameters_figure",
    "paper_data",
    "plan_data",
    "plan_figure",
    "points_data",
    "points_figure",
    "save",
    "save_figure",
    "steps_curve_data",
    "steps_curve_figure",
    "svg_text",
    "throughput_data",
    "throughput_figure",
]
