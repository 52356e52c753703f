"""From the measurements of studies to numbers: pure functions that open no file and draw nothing.

`summarise` gives everything there is to say about a workload; the rest are its parts, and what the paper asks of
its own data: budgets, best measurements, normalised curves, points by their outcome, groups, robustness.
"""

from batchlab.analysis.answers.best_of import BestOf, best_of
from batchlab.analysis.answers.boundary import at_boundary
from batchlab.analysis.answers.confirmed import ConfirmedSteps, confirmed_steps, median_interval
from batchlab.analysis.answers.full_protocol import as_full, as_known, check_full, is_cut_short
from batchlab.analysis.answers.headline import Estimate, Headline, choose_headline
from batchlab.analysis.answers.measured import check_measured, is_measured
from batchlab.analysis.answers.steps_to_result import (
    StepsToResult,
    fewest_steps,
    first_steps,
    steps_to_result,
    top_trials,
)
from batchlab.analysis.answers.stuck import count_stuck
from batchlab.analysis.answers.tuning import Guides, TunedPoint, guides, tuned_points
from batchlab.analysis.curve.critical_batch import CriticalBatchFit, fit_critical_batch
from batchlab.analysis.curve.hyperbola import Hyperbola, PowerLaw, fit_hyperbola, fit_power_law
from batchlab.analysis.curve.regime_end import RegimeEnd
from batchlab.analysis.curve.regimes import Efficiency, Regime, Regimes, find_regimes
from batchlab.analysis.curve.shape_curve import ShapeCurve, fit_shape
from batchlab.analysis.example import example_study, example_workload
from batchlab.analysis.interval import Interval
from batchlab.analysis.summary import WorkloadSummary, curve_json, summarise
from batchlab.analysis.times.all_reduce import AllReduce
from batchlab.analysis.times.deadline import BestByDeadline, best_by_deadline
from batchlab.analysis.times.expected import Expected
from batchlab.analysis.times.expected_steps import StepsCurve, expected_steps
from batchlab.analysis.times.throughput import Throughput
from batchlab.analysis.times.throughput_fit import StepTimes, ThroughputFit, fit_throughput
from batchlab.analysis.times.training_plan import PlanRow, TrainingPlan, make_plan, plan_json
from batchlab.analysis.trials.best import BestMeasurement, best_measurement, best_values
from batchlab.analysis.trials.budget import apply_example_budget, apply_step_budget
from batchlab.analysis.trials.classification import ClassifiedPoints, classify_points
from batchlab.analysis.trials.grouping import group_trials
from batchlab.analysis.trials.normalisation import NormalisedPoint, normalise_steps
from batchlab.analysis.trials.robustness import steps_without_best
from batchlab.analysis.trials.selection import first_complete_trials, first_trials, select_metric, select_trials

__all__ = [
    "AllReduce",
    "BestByDeadline",
    "BestMeasurement",
    "BestOf",
    "ClassifiedPoints",
    "ConfirmedSteps",
    "CriticalBatchFit",
    "Efficiency",
    "Estimate",
    "Expected",
    "Guides",
    "Headline",
    "Hyperbola",
    "Interval",
    "NormalisedPoint",
    "PlanRow",
    "PowerLaw",
    "Regime",
    "RegimeEnd",
    "Regimes",
    "ShapeCurve",
    "StepTimes",
    "StepsCurve",
    "StepsToResult",
    "Throughput",
    "ThroughputFit",
    "TrainingPlan",
    "TunedPoint",
    "WorkloadSummary",
    "apply_example_budget",
    "apply_step_budget",
    "as_full",
    "as_known",
    "at_boundary",
    "best_by_deadline",
    "best_measurement",
    "best_of",
    "best_values",
    "check_full",
    "check_measured",
    "choose_headline",
    "classify_points",
    "confirmed_steps",
    "count_stuck",
    "curve_json",
    "example_study",
    "example_workload",
    "expected_steps",
    "fewest_steps",
    "find_regimes",
    "first_complete_trials",
    "first_steps",
    "first_trials",
    "fit_critical_batch",
    "fit_hyperbola",
    "fit_power_law",
    "fit_shape",
    "fit_throughput",
    "group_trials",
    "guides",
    "is_cut_short",
    "is_measured",
    "make_plan",
    "median_interval",
    "normalise_steps",
    "plan_json",
    "select_metric",
    "select_trials",
    "steps_to_result",
    "steps_without_best",
    "summarise",
    "top_trials",
    "tuned_points",
]
