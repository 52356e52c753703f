"""Figures in two steps: `*_data` computes plain numbers, `draw_*` draws them. Only this room knows matplotlib."""

from batchlab.plots.export import save, svg_text
from batchlab.plots.metaparameters import (
    MetaparametersData,
    draw_metaparameters,
    metaparameters_data,
    metaparameters_figure,
)
from batchlab.plots.steps_curve import StepsCurveData, draw_steps_curve, steps_curve_data, steps_curve_figure

__all__ = [
    "MetaparametersData",
    "StepsCurveData",
    "draw_metaparameters",
    "draw_steps_curve",
    "metaparameters_data",
    "metaparameters_figure",
    "save",
    "steps_curve_data",
    "steps_curve_figure",
    "svg_text",
]
