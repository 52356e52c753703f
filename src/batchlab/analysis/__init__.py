"""From the measurements of studies to numbers: pure functions that open no file and draw nothing.

`summarise` gives everything there is to say about a workload; the rest are its parts, and what the paper asks of
its own data: budgets, best measurements, normalised curves, points by their outcome, groups, robustness.
"""

from batchlab.analysis.best import BestMeasurement, best_measurement
from batchlab.analysis.bootstrap import (
    Bounds,
    Interval,
    distribution_bounds,
    minimum_bounds,
    minimum_interval,
    rank_probabilities,
    ratio_bounds,
    resample_minimum,
)
from batchlab.analysis.boundary import at_boundary
from batchlab.analysis.budget import apply_example_budget, apply_step_budget, within_steps
from batchlab.analysis.classification import ClassifiedPoints, classify_points
from batchlab.analysis.critical_batch import CriticalBatchFit, fit_critical_batch
from batchlab.analysis.example import example_study, example_workload
from batchlab.analysis.grouping import group_trials
from batchlab.analysis.hyperbola import Hyperbola, PowerLaw, fit_hyperbola, fit_power_law
from batchlab.analysis.measured import check_measured, is_measured
from batchlab.analysis.normalisation import NormalisedPoint, normalise_steps
from batchlab.analysis.regime_bounds import ScalingBounds, bound_scaling
from batchlab.analysis.regimes import (
    Regime,
    Scaling,
    end_of_perfect_scaling,
    max_useful_batch_size,
    measure_scaling,
    scaling_efficiencies,
)
from batchlab.analysis.robustness import steps_without_best
from batchlab.analysis.selection import first_complete_trials, select_metric, select_trials
from batchlab.analysis.steps_to_result import (
    StepsToResult,
    fewest_steps,
    first_steps,
    resample_steps,
    steps_to_result,
)
from batchlab.analysis.summary import WorkloadSummary, curve_json, summarise
from batchlab.analysis.sweep_steps import FewestSteps, sweep_steps
from batchlab.analysis.tuning import Guides, TunedPoint, guides, tuned_bounds, tuned_points

__all__ = [
    "BestMeasurement",
    "Bounds",
    "ClassifiedPoints",
    "CriticalBatchFit",
    "FewestSteps",
    "Guides",
    "Hyperbola",
    "Interval",
    "NormalisedPoint",
    "PowerLaw",
    "Regime",
    "Scaling",
    "ScalingBounds",
    "StepsToResult",
    "TunedPoint",
    "WorkloadSummary",
    "apply_example_budget",
    "apply_step_budget",
    "at_boundary",
    "best_measurement",
    "bound_scaling",
    "check_measured",
    "classify_points",
    "curve_json",
    "distribution_bounds",
    "end_of_perfect_scaling",
    "example_study",
    "example_workload",
    "fewest_steps",
    "first_complete_trials",
    "first_steps",
    "fit_critical_batch",
    "fit_hyperbola",
    "fit_power_law",
    "group_trials",
    "guides",
    "is_measured",
    "max_useful_batch_size",
    "measure_scaling",
    "minimum_bounds",
    "minimum_interval",
    "normalise_steps",
    "rank_probabilities",
    "ratio_bounds",
    "resample_minimum",
    "resample_steps",
    "scaling_efficiencies",
    "select_metric",
    "select_trials",
    "steps_to_result",
    "steps_without_best",
    "summarise",
    "sweep_steps",
    "tuned_bounds",
    "tuned_points",
    "within_steps",
]
