"""From the measurements of studies to numbers: pure functions that open no file and draw nothing.

`summarise` gives everything there is to say about a workload; the rest are its parts.
"""

from batchlab.analysis.bootstrap import Interval, minimum_interval, resample_minimum
from batchlab.analysis.boundary import at_boundary
from batchlab.analysis.critical_batch import CriticalBatchFit, fit_critical_batch
from batchlab.analysis.hyperbola import Hyperbola, PowerLaw, fit_hyperbola, fit_power_law
from batchlab.analysis.scaling import Regime, Scaling, measure_scaling
from batchlab.analysis.steps_to_result import StepsToResult, first_steps, steps_to_result
from batchlab.analysis.summary import WorkloadSummary, curve_json, summarise
from batchlab.analysis.tuning import Guides, TunedPoint, guides, tuned_points

__all__ = [
    "CriticalBatchFit",
    "Guides",
    "Hyperbola",
    "Interval",
    "PowerLaw",
    "Regime",
    "Scaling",
    "StepsToResult",
    "TunedPoint",
    "WorkloadSummary",
    "at_boundary",
    "curve_json",
    "first_steps",
    "fit_critical_batch",
    "fit_hyperbola",
    "fit_power_law",
    "guides",
    "measure_scaling",
    "minimum_interval",
    "resample_minimum",
    "steps_to_result",
    "summarise",
    "tuned_points",
]
