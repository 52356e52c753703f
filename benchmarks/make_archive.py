"""Writes a made-up archive in the layout of the published batch-science data, at its full size or a fraction of it.

    python benchmarks/make_archive.py --scale 0.02 --seed 0 OUT [--tar bz2|gz|xz|none] [--processes N]

The studies and their numbers of trials are those of the published inventory; the curves are invented. At every batch
size the best trial meets its workload's goal near S_min + E_min / batch_size steps, the others later or never by the
distance of their metaparameters from an optimum. Scale 1 has 194,399 trials and 71.6 million measurements, as many as
the published archive. The same scale and seed give the same bytes, whatever the number of processes.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from scipy.stats import qmc

from batchlab.core.space import Range, SearchSpace, Values
from batchlab.core.trial import Status
from batchlab.published.inventory import InventoryStudy, inventory

FOLDER = "batch_science"
TAR_NAME = "batch_science_data.tar"
ROWS = 561
"""Measurements of a complete trial whose grid is fine enough; makes 71.6 million in all at scale 1."""

LEAST = {Status.COMPLETE: 4, Status.INCOMPLETE: 1, Status.INFEASIBLE: 1}
"""Trials that a study keeps at any scale, where the inventory has as many."""


# What each workload looks like -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Task:
    """What the curves of one dataset have in common."""

    metric: str
    """The metric that carries the goal. A second one, the cross entropy, follows it."""

    start: float
    """The metric before training."""

    cross_entropy: float
    """The cross entropy before training."""

    exponent: float = 1.0
    """The cross entropy falls as this power of the error."""

    ratios: Mapping[str, float]
    """Per split: the metric late in training over its value on the validation split."""

    examples: Mapping[str, int] = field(default_factory=dict)
    """Per split: how many examples an error is counted on."""

    power: float = 0.8
    """The distance from the final value falls as this power of the steps."""

    length: float = 4.0
    """Complete trials train this many times the steps that the best one needs."""


@dataclass(frozen=True)
class Law:
    """One workload: the best trial meets `goal` after s_min + e_min / batch_size steps."""

    s_min: float
    e_min: float
    goal: float
    final: float
    """What the best trial's metric tends to."""

    rate: float
    """The optimal effective learning rate at very large batch sizes."""

    def steps(self, batch_size: int) -> float:
        """Return the steps that the best trial needs."""
        return self.s_min + self.e_min / batch_size

    def effective_learning_rate(self, batch_size: int) -> float:
        """Return the optimum: it grows with the batch size, ever more slowly."""
        return self.rate / (1 + self.e_min / self.s_min / batch_size) ** 0.7


def images(classes: int, train: int, val: int, test: int, **details: Any) -> Task:
    """Return the task of telling images of so many classes apart, evaluated on so many examples."""
    start, examples = 1 - 1 / classes, {"train": train, "val": val, "test": test}
    return Task(
        metric="classification_error", start=start, cross_entropy=math.log(classes), examples=examples, **details
    )


def words(vocabulary: int, ratios: Mapping[str, float]) -> Task:
    """Return the task of predicting the next of so many sub-words."""
    start = math.log(vocabulary)
    return Task(metric="cross_entropy_error", start=start, cross_entropy=start, ratios=ratios)


_IMAGENET = {"exponent": 1.35, "ratios": {"train": 0.72, "val": 1.0, "test": 0.93}, "length": 2.0}
TASKS = {
    "mnist": images(10, 10_000, 5_000, 10_000, ratios={"train": 0.25, "val": 1.0, "test": 1.05}, power=1.0),
    "fashion_mnist": images(10, 10_000, 5_000, 10_000, ratios={"train": 0.45, "val": 1.0, "test": 1.06}, power=1.0),
    "cifar_10": images(10, 10_000, 5_000, 10_000, ratios={"train": 0.7, "val": 1.0, "test": 1.03}, length=2.0),
    "imagenet": images(1000, 50_176, 50_000, 50_045, **_IMAGENET),
    "imagenet_half_images": images(1000, 50_176, 50_000, 50_045, **_IMAGENET),
    "imagenet_half_classes": images(500, 50_176, 25_000, 50_045, **_IMAGENET),
    "open_images_v4": Task(
        metric="average_precision",
        start=0.002,
        cross_entropy=math.log(2),
        exponent=10.0,
        ratios={"train": 1.25, "val": 1.0, "test": 0.97},
        length=2.0,
    ),
    "lm1b": words(32_000, {"train": 0.97, "val": 1.0, "test": 1.01}),
    "common_crawl": words(24_006, {"train": 0.99, "val": 1.0}),
}
LAWS = {
    "cifar_10/resnet_8/nesterov_momentum": Law(1_500, 2.5e6, 0.3, 0.25, 1.0),
    "cifar_10/resnet_8/sgd": Law(6_000, 2.4e6, 0.3, 0.25, 0.8),
    "common_crawl/transformer_base/nesterov_momentum": Law(8_000, 2.0e7, 3.9, 3.6, 0.5),
    "fashion_mnist/simple_cnn_base/nesterov_momentum": Law(500, 1.2e6, 0.1, 0.08, 0.5),
    "imagenet/resnet_50/nesterov_momentum": Law(4_000, 7.6e7, 0.25, 0.23, 20.0),
    "imagenet/vgg_11/nesterov_momentum": Law(16_000, 6.0e7, 0.35, 0.32, 0.6),
    "imagenet_subsets/imagenet_half_classes/resnet_50/nesterov_momentum": Law(4_000, 4.4e7, 0.3, 0.27, 20.0),
    "imagenet_subsets/imagenet_half_images/resnet_50/nesterov_momentum": Law(7_000, 4.8e7, 0.3, 0.28, 15.0),
    "lm1b/lstm/nesterov_momentum": Law(30_000, 6.0e6, 3.9, 3.65, 4.0),
    "lm1b/transformer_base/nesterov_momentum": Law(6_000, 1.5e7, 3.9, 3.6, 0.5),
    "lm1b/transformer_narrow_and_shallow/nesterov_momentum": Law(5_000, 2.5e7, 4.2, 3.95, 0.8),
    "lm1b/transformer_shallow/momentum": Law(7_700, 1.6e7, 3.9, 3.7, 0.5),
    "lm1b/transformer_shallow/nesterov_momentum": Law(7_000, 1.6e7, 3.9, 3.7, 0.6),
    "lm1b/transformer_shallow/sgd": Law(30_000, 1.55e7, 3.9, 3.7, 0.4),
    "lm1b/transformer_wide/nesterov_momentum": Law(9_000, 6.0e6, 4.2, 3.5, 0.3),
    "mnist/fc_1024/sgd": Law(900, 2.4e5, 0.03, 0.018, 0.6),
    "mnist/fc_1024_1024/sgd": Law(700, 2.0e5, 0.03, 0.017, 0.5),
    "mnist/fc_1024_1024_1024/sgd": Law(500, 2.1e5, 0.03, 0.017, 0.4),
    "mnist/fc_128_128_128/sgd": Law(900, 3.2e5, 0.03, 0.02, 0.4),
    "mnist/fc_2048_2048_2048/sgd": Law(560, 1.8e5, 0.03, 0.016, 0.4),
    "mnist/fc_256_256_256/sgd": Law(600, 2.7e5, 0.03, 0.019, 0.4),
    "mnist/fc_512_512_512/sgd": Law(520, 2.4e5, 0.03, 0.018, 0.4),
    "mnist/fc_64_64_64/sgd": Law(1_400, 5.0e5, 0.03, 0.022, 0.4),
    "mnist/simple_cnn_base/momentum": Law(420, 5.0e5, 0.01, 0.006, 0.5),
    "mnist/simple_cnn_base/nesterov_momentum": Law(400, 5.0e5, 0.01, 0.006, 0.5),
    "mnist/simple_cnn_base/sgd": Law(2_000, 4.8e5, 0.01, 0.006, 0.4),
    "mnist/simple_cnn_narrow/sgd": Law(2_200, 5.2e5, 0.01, 0.0065, 0.4),
    "mnist/simple_cnn_wide/sgd": Law(1_900, 4.6e5, 0.01, 0.0058, 0.4),
    "mnist_subsets/mnist_13750/simple_cnn_base/nesterov_momentum": Law(260, 2.8e5, 0.02, 0.012, 0.5),
    "mnist_subsets/mnist_27500/simple_cnn_base/nesterov_momentum": Law(220, 2.6e5, 0.02, 0.009, 0.5),
    "mnist_subsets/mnist_55000/simple_cnn_base/nesterov_momentum": Law(200, 2.4e5, 0.02, 0.007, 0.5),
    "mnist_subsets/mnist_6875/simple_cnn_base/nesterov_momentum": Law(420, 3.0e5, 0.02, 0.0145, 0.5),
    "open_images_v4/resnet_50/nesterov_momentum": Law(25_000, 3.0e7, 0.31, 0.34, 10.0),
    "solution_quality/fashion_mnist/simple_cnn_base/nesterov_momentum": Law(500, 1.2e6, 0.1, 0.08, 0.5),
    "solution_quality/mnist/simple_cnn_base/nesterov_momentum": Law(400, 5.0e5, 0.01, 0.006, 0.5),
}


def task_of(study: InventoryStudy) -> Task:
    """Return the task of the study's dataset; a subset of MNIST is MNIST."""
    return TASKS["mnist" if study.dataset.startswith("mnist") else study.dataset]


def is_saturating(study: InventoryStudy) -> bool:
    """Return whether the study trains far past its goal, to see how good a solution can become."""
    return study.base_dir.startswith("solution_quality")


def has_time_budget(study: InventoryStudy) -> bool:
    """Return whether trials ended by the clock; which studies of the published archive did is not known."""
    return (study.model == "lstm" or study.dataset == "common_crawl") and study.batch_size >= 4096


# Search spaces ---------------------------------------------------------------------------------------------

MARGIN = 0.5
"""Decades of effective learning rate between the optimum and divergence, where a space is free to be chosen."""


def momentum_range(study: InventoryStudy) -> Range | None:
    if study.optimizer == "sgd":
        return None
    is_residual = study.model == "resnet_50"
    is_small = "mnist" in study.dataset or study.dataset == "cifar_10"
    return Range(min=0.9 if is_residual else 0.0, max=0.999 if is_small else 0.9999, scale="reverse_log")


def learning_rate_range(study: InventoryStudy) -> Range:
    """Return the published range where it is known; else one whose upper part diverges as often as it did."""
    if (study.dataset, study.model, study.batch_size) == ("imagenet", "resnet_50", 256):
        return Range(min=1e-4, max=10.0, scale="log")
    if study.workload.startswith("lm1b/transformer_") and study.optimizer == "nesterov_momentum":
        return Range(min=1e-4, max=1e-1, scale="log")
    decades, momentum = 4.0, momentum_range(study)
    optimum = math.log10(LAWS[study.workload].effective_learning_rate(study.batch_size))
    lowest = optimum + MARGIN - divergence_edge(study, decades, momentum_decades(momentum)) - lowest_boost(momentum)
    low = round_number(10**lowest)
    return Range(min=low, max=float(f"{low * 10**decades:.6g}"), scale="log")


def round_number(value: float) -> float:
    """Return the nearest of ..., 0.1, 0.3, 1, 3, 10, ..., as someone would write it down.

    >>> round_number(0.0021)
    0.003
    """
    decade, is_three = divmod(round(2 * math.log10(value)), 2)
    return float(f"{3 if is_three else 1}e{decade}")


def momentum_decades(momentum: Range | None) -> float:
    return math.log10((1 - momentum.min) / (1 - momentum.max)) if momentum else 0.0


def lowest_boost(momentum: Range | None) -> float:
    """Return the decades by which the least momentum raises the effective learning rate."""
    return -math.log10(1 - momentum.min) if momentum else 0.0


def divergence_edge(study: InventoryStudy, rate_decades: float, momentum_decades: float) -> float:
    """Return where divergence begins: decades of effective learning rate above the space's lowest corner."""
    share = study.infeasible / (study.complete + study.incomplete + study.infeasible)
    sums = np.add.outer(np.linspace(0, rate_decades, 101), np.linspace(0, momentum_decades, 101))
    return float(np.quantile(sums, 1 - np.clip(share, 0.1, 0.9)))


def search_space(study: InventoryStudy, train_steps: int) -> SearchSpace:
    """Return the searched metaparameters; what the published archive holds fixed is not among them."""
    space: dict[str, Any] = {"learning_rate": learning_rate_range(study)}
    if momentum := momentum_range(study):
        space["momentum"] = momentum
    if study.model in ("resnet_8", "resnet_50", "vgg_11"):
        low, high = math.ceil(train_steps / 2), train_steps
        space["learning_rate_decay_steps"] = Range(min=low, max=high, type="integer")
    if study.model == "resnet_50":
        space["end_learning_rate_factor"] = Range(min=1e-4, max=0.1, scale="log")
    if is_smoothed(study):
        space["label_smoothing"] = Values(values=(0.0, 0.01, 0.1))
    return SearchSpace.model_validate(space)


def is_smoothed(study: InventoryStudy) -> bool:
    """Return whether label smoothing is searched; it is missing from some studies of ImageNet, too."""
    if study.dataset == "imagenet":
        return study.model == "resnet_50" and study.batch_size >= 256
    return study.dataset == "imagenet_half_images"


def parameter_config(dimension: Range | Values) -> dict[str, Any]:
    """Return a dimension as `study.json` writes it."""
    if isinstance(dimension, Values):
        return {"feasible_points": list(dimension.values), "type": "DISCRETE"}
    if dimension.type == "integer":
        return {"max_value": int(dimension.max), "min_value": int(dimension.min), "scale": "", "type": "INTEGER"}
    scale = f"{dimension.scale.upper()}_SCALE"
    return {"max_value": dimension.max, "min_value": dimension.min, "scale": scale, "type": "DOUBLE"}


# The plan of a study: its points, how each trial ends, when it is evaluated -----------------------------------


@dataclass(frozen=True)
class Plan:
    """Everything about a study but its measurements. Arrays have one entry for each trial, in ascending id."""

    study: InventoryStudy
    space: SearchSpace
    train_steps: int
    unit: int
    """All steps are multiples of it."""

    units: np.ndarray  # [num_trials, num_metaparameters] points of the unit cube
    status: np.ndarray  # [num_trials] of Status values
    distance: np.ndarray  # [num_trials] from the optimal metaparameters
    last: np.ndarray  # [num_trials] int64, the last evaluated step, in units
    spacing: np.ndarray  # [num_trials] evaluation k is near unit * spacing * k ** bend

    @property
    def bend(self) -> int:
        """1: evaluations at even distances. 3: close together at first, for trials that run very long."""
        return 3 if is_saturating(self.study) else 1

    @property
    def rows(self) -> np.ndarray:
        """The number of measurements of each trial."""
        count = np.minimum(self.last, (self.last / self.spacing) ** (1 / self.bend))
        return np.ceil(count).astype(np.int64) + 1


def study_generator(study: InventoryStudy, seed: int) -> np.random.Generator:
    """Return the study's own random numbers, whoever writes the others."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(inventory().index(study),)))


def plan_study(study: InventoryStudy, scale: float, rng: np.random.Generator) -> Plan:
    """Return the plan of a study with `scale` times the trials of the published one."""
    counts = trial_counts(study, scale)
    unit = grid_unit(study)
    train_steps = planned_steps(study, unit)
    space = search_space(study, train_steps)
    optimum = optimal_units(study, space)
    units = qmc.Halton(len(space.names), rng=rng).random(sum(counts.values()))
    overshoot = effective_decades(space, units) + rng.normal(0, 0.15, len(units))
    status = draw_statuses(counts, overshoot, rng)
    # At a small scale, too, one of the first complete trials is well tuned.
    best = rng.choice(np.flatnonzero(status == Status.COMPLETE)[: LEAST[Status.COMPLETE]])
    units[best] = np.clip(optimum + rng.normal(0, 0.01, len(optimum)), 0, 1)
    last = train_steps // unit * trained_fraction(study, status, overshoot, rng)
    return Plan(
        study=study,
        space=space,
        train_steps=train_steps,
        unit=unit,
        units=units,
        status=status,
        distance=distances(space, units, optimum),
        last=np.floor(last + 1e-9).astype(np.int64),
        spacing=spacing(study, train_steps // unit) * rng.uniform(0.95, 1.05, len(units)),
    )


def trial_counts(study: InventoryStudy, scale: float) -> dict[Status, int]:
    """Return how many trials end each way; every kind that the inventory has stays."""
    published = {
        Status.COMPLETE: study.complete,
        Status.INCOMPLETE: study.incomplete,
        Status.INFEASIBLE: study.infeasible,
    }
    return {status: min(count, max(LEAST[status], round(scale * count))) for status, count in published.items()}


def grid_unit(study: InventoryStudy) -> int:
    """Return what all evaluated steps are multiples of, as far as the published figures tell."""
    if study.dataset == "cifar_10" or "mnist" in study.dataset:
        if study.batch_size >= 512:
            return 10
        if study.base_dir.startswith("mnist_subsets") and study.batch_size >= 16:
            return 25 if study.batch_size >= 128 else 50
        return 50 if study.batch_size > 128 else 100
    return 500


def planned_steps(study: InventoryStudy, unit: int) -> int:
    """Return the steps of a complete trial: two digits and zeros, a multiple of the grid's unit."""
    needed = LAWS[study.workload].steps(study.batch_size)
    steps = max(task_of(study).length * needed, min(1.25 * ROWS * unit, 12 * needed))
    if is_saturating(study):
        steps = float(np.clip(200 * needed, 1e6, 1e7))
    return math.ceil(float(f"{steps:.1e}") / unit) * unit


def spacing(study: InventoryStudy, last: int) -> float:
    """Return the mean distance of evaluations, in units: gaps of one and two units at the closest."""
    return last / ROWS**3 if is_saturating(study) else max(1.25, last / ROWS)


def effective_decades(space: SearchSpace, units: np.ndarray) -> np.ndarray:
    """Return each point's decades of effective learning rate above the lowest corner of the space."""
    return rate_decades(space) * units[..., 0] + boost_decades(space, units)


def boost_decades(space: SearchSpace, units: np.ndarray) -> np.ndarray:
    """Return the decades that momentum adds to it; unit 0 of a reverse logarithmic range is its upper end."""
    momentum = space.root.get("momentum")
    if not isinstance(momentum, Range):
        return np.zeros(units.shape[:-1])
    return momentum_decades(momentum) * (1 - units[..., 1])


def rate_decades(space: SearchSpace) -> float:
    rate = space["learning_rate"]
    assert isinstance(rate, Range)
    return math.log10(rate.max / rate.min)


def optimal_units(study: InventoryStudy, space: SearchSpace) -> np.ndarray:
    """Return the optimum in the unit cube. Larger batches take more of the effective rate from momentum."""
    rate, momentum = space["learning_rate"], momentum_range(study)
    assert isinstance(rate, Range)
    wide, boost = rate_decades(space), momentum_decades(momentum)
    wanted = math.log10(LAWS[study.workload].effective_learning_rate(study.batch_size) / rate.min)
    decades = min(wanted - lowest_boost(momentum), divergence_edge(study, wide, boost) - MARGIN / 2)
    boosted = decades * boost / (wide + boost) * (0.8 + 0.4 * math.log2(study.batch_size) / 16)
    units = {"learning_rate": (decades - boosted) / wide, "label_smoothing": 5 / 6}
    if momentum:
        units["momentum"] = 1 - boosted / boost
    return np.array([units.get(name, 0.5) for name in space.names])


def distances(space: SearchSpace, units: np.ndarray, optimum: np.ndarray) -> np.ndarray:
    """Return how far each point is from the optimum, mostly in decades of effective learning rate."""
    rate = effective_decades(space, units) - effective_decades(space, optimum)
    boost = boost_decades(space, units) - boost_decades(space, optimum)
    others = [
        i for i, name in enumerate(space.names) if name in ("learning_rate_decay_steps", "end_learning_rate_factor")
    ]
    minor = 0.6 * (units[:, others] - optimum[others])
    return np.sqrt((rate / 0.7) ** 2 + (boost / 1.5) ** 2 + (minor**2).sum(axis=1))


def draw_statuses(counts: Mapping[Status, int], overshoot: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return how each trial ends: the largest effective learning rates diverge, chance interrupts."""
    status = np.full(len(overshoot), Status.COMPLETE, dtype=object)
    ascending = np.argsort(overshoot, kind="stable")
    feasible, infeasible = np.split(ascending, [len(overshoot) - counts[Status.INFEASIBLE]])
    status[infeasible] = Status.INFEASIBLE
    status[rng.choice(feasible, counts[Status.INCOMPLETE], replace=False)] = Status.INCOMPLETE
    return status


def trained_fraction(
    study: InventoryStudy, status: np.ndarray, overshoot: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return how much of the planned steps each trial trained."""
    chance = rng.random(len(status))
    longer = np.where(chance < 0.1, 1 + chance, 1.0)
    complete = np.exp(0.3 * (chance - 0.5)) if has_time_budget(study) else longer
    feasible = overshoot[status != Status.INFEASIBLE].max()
    diverged = np.exp(-1.5 * np.maximum(overshoot - feasible, 0)) * chance
    interrupted = 0.02 + 0.93 * chance
    return np.select([status == Status.COMPLETE, status == Status.INCOMPLETE], [complete, interrupted], diverged)


# The measurements of a study -------------------------------------------------------------------------------

NOISE = 0.03
"""Of one evaluation, relative to the distance from the final value."""

POWERS_OF_TEN = np.array([10.0**power for power in range(23)])  # all of them exact


@dataclass(frozen=True)
class Rows:
    """The rows of all trials of a study, trial after trial. Arrays have one entry for each row."""

    trial: np.ndarray  # [num_rows] int64, from 0
    number: np.ndarray  # [num_rows] int64, of the row in its trial, from 0
    step: np.ndarray  # [num_rows] int64
    remaining: np.ndarray  # [num_rows] share of the way to the final value that is left: 1 at step 0


def make_rows(plan: Plan, rng: np.random.Generator) -> Rows:
    """Return when each trial is evaluated, and how far it has come by then."""
    counts = plan.rows
    trial = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(trial)) - np.repeat(np.cumsum(counts) - counts, counts)
    grid = np.maximum(np.floor(plan.spacing[trial] * number**plan.bend), number).astype(np.int64)
    grid[np.cumsum(counts) - 1] = plan.last
    step = grid * plan.unit
    law, power = LAWS[plan.study.workload], task_of(plan.study).power
    luck = np.exp(rng.normal(0, 0.04, len(counts)))
    # The best trial's metric is at the goal after law.steps; worse ones run through the same curve more slowly.
    to_goal = law.steps(plan.study.batch_size) * (1 + plan.distance**2 / 2) ** 2 * luck
    ratio = (task_of(plan.study).start - law.final) / (law.goal - law.final)
    time_constant = to_goal / (ratio ** (1 / power) - 1)
    return Rows(trial, number, step, (1 + step / time_constant[trial]) ** -power)


def final_values(plan: Plan) -> np.ndarray:
    """Return what each trial's metric tends to: worse far from the optimum, worse without smoothing."""
    law = LAWS[plan.study.workload]
    penalty = np.minimum(0.25 * plan.distance**2, 20) + smoothing_penalty(plan)
    final = law.final + (law.goal - law.final) * penalty
    low, high = sorted((law.final, 0.3 * law.final + 0.7 * task_of(plan.study).start))
    return np.clip(final, low, high)


def smoothing_penalty(plan: Plan) -> np.ndarray:
    """Return what too little label smoothing costs: nothing at small batches, the goal at very large ones."""
    if "label_smoothing" not in plan.space.names:
        return np.zeros(len(plan.units))
    smoothing = plan.units[:, plan.space.names.index("label_smoothing")]
    growth = np.clip((math.log2(plan.study.batch_size) - 10) / 6, 0, 1)
    return growth * np.select([smoothing < 1 / 3, smoothing < 2 / 3], [1.3, 0.9], 0.0)


def make_columns(plan: Plan, rows: Rows, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the metric columns in the order of the file."""
    task = task_of(plan.study)
    final = final_values(plan)[rows.trial]
    way = (task.start - final) * rows.remaining
    value, done = final + way, 1 - rows.remaining
    columns: dict[str, np.ndarray] = {}
    for split, ratio in task.ratios.items():
        noise = NOISE * way * done * rng.standard_normal(len(way), dtype=np.float32)
        columns |= split_columns(task, split, value * (1 + (ratio - 1) * done) + noise)
    spoil(plan, rows, task, columns, rng)
    return {name: six_digits(values) for name, values in columns.items()}


def split_columns(task: Task, split: str, value: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns of one split: the cross entropy, and the metric that it follows if that is another."""
    if task.metric == "cross_entropy_error":
        return {f"{split}/cross_entropy_error": value}
    value = np.clip(value, 1e-6, 1)
    is_error = task.metric == "classification_error"
    badness = value / task.start if is_error else (1 - value) / (1 - task.start)
    if is_error:
        value = np.rint(value * task.examples[split]) / task.examples[split]
    return {
        f"{split}/cross_entropy_error": task.cross_entropy * badness**task.exponent,
        f"{split}/{task.metric}": value,
    }


def spoil(plan: Plan, rows: Rows, task: Task, columns: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Let the curves of infeasible trials end in one of three ways: without a sign, exploding, in NaN."""
    num_trials = len(plan.status)
    ending = np.where(plan.status == Status.INFEASIBLE, rng.integers(0, 3, num_trials), 0)
    last_rows = rng.integers(1, 4, num_trials)
    is_late = (plan.rows[rows.trial] - rows.number <= last_rows[rows.trial]) & (rows.number > 0)
    exploding = np.flatnonzero(is_late & (ending[rows.trial] == 1))
    lost = is_late & (ending[rows.trial] == 2)
    for name, values in columns.items():
        is_loss = name.endswith("/cross_entropy_error")
        values[exploding] = task.cross_entropy * 10 ** rng.uniform(0.2, 4.5, len(exploding)) if is_loss else task.start
        values[lost] = np.nan


def six_digits(values: np.ndarray) -> np.ndarray:
    """Return the values, between 0 and a million, rounded to six significant digits.

    >>> six_digits(np.array([0.0123456789, 23456.789])).tolist()
    [0.0123457, 23456.8]
    """
    with np.errstate(divide="ignore"):
        decimals = 5 - np.floor(np.log10(values))
    power = POWERS_OF_TEN[np.clip(np.nan_to_num(decimals), 0, 22).astype(np.int64)]
    return np.rint(values * power) / power


# Files -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Written:
    """What one study, or all of them, came to."""

    trials: int = 0
    rows: int = 0
    bytes: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(self.trials + other.trials, self.rows + other.rows, self.bytes + other.bytes)


def write_study(study: InventoryStudy, scale: float, seed: int, folder: Path) -> Written:
    """Write one study below `folder`; what is written depends on the arguments alone."""
    rng = study_generator(study, seed)
    plan = plan_study(study, scale, rng)
    rows = make_rows(plan, rng)
    columns = make_columns(plan, rows, rng)
    place = folder / study.workload / str(study.batch_size)
    place.mkdir(parents=True)
    num_bytes = write_json(place / "study.json", study_record(plan))
    for record, text in zip(trial_records(plan, rows, rng), trial_texts(plan, rows, columns), strict=True):
        trial_folder = place / str(record["trial_id"])
        trial_folder.mkdir()
        num_bytes += write_json(trial_folder / "metadata.json", record)
        num_bytes += (trial_folder / "measurements.csv").write_bytes(text)
    return Written(len(plan.status), len(rows.step), num_bytes)


def write_json(path: Path, record: Mapping[str, Any]) -> int:
    """Write JSON as the published files have it, a space after every comma; return the number of bytes."""
    return path.write_bytes(json.dumps(record, indent=2, sort_keys=True, separators=(", ", ": ")).encode())


def study_record(plan: Plan) -> dict[str, Any]:
    """Return the contents of `study.json`."""
    study = plan.study
    return {
        "batch_size": study.batch_size,
        "dataset": study.dataset,
        "early_stopping": study.incomplete > study.complete / 2,
        "model": study.model,
        "optimizer": study.optimizer,
        "parameter_configs": {name: parameter_config(plan.space[name]) for name in plan.space.names},
        "train_steps": 0 if has_time_budget(study) else plan.train_steps,
    }


def trial_records(plan: Plan, rows: Rows, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield the contents of each `metadata.json`. A trial may diverge some steps after its last evaluation."""
    last_steps = rows.step[np.cumsum(plan.rows) - 1]
    unseen = np.where(plan.status == Status.INFEASIBLE, rng.integers(0, plan.unit, len(last_steps)), 0)
    name = f"made-up-{plan.study.model}-{plan.study.optimizer}-bs{plan.study.batch_size}"
    for index, units in enumerate(plan.units.tolist()):
        yield {
            "_internal_study_name": name,
            "_internal_trial_id": index + 1,
            "parameters": plan.space.point(units),
            "status": str(plan.status[index]),
            "steps": int(last_steps[index] + unseen[index]),
            "trial_id": index + 1,
        }


def trial_texts(plan: Plan, rows: Rows, columns: Mapping[str, np.ndarray]) -> Iterator[bytes]:
    """Yield the contents of each `measurements.csv`: all rows are formatted at once, then cut."""
    header = ",".join(["step", *columns]).encode() + b"\n"
    table = pa.table({"step": rows.step, **columns})
    stream = pa.BufferOutputStream()
    options = pa.csv.WriteOptions(include_header=False, batch_size=1 << 16)
    pa.csv.write_csv(table, stream, options)
    text = stream.getvalue().to_pybytes()
    line_ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
    ends = line_ends[np.cumsum(plan.rows) - 1].tolist()
    for start, end in zip([0, *ends], ends, strict=False):
        yield header + text[start:end]


WriteTask = tuple[InventoryStudy, float, int, Path]


def write_archive(
    studies: Sequence[InventoryStudy], scale: float, seed: int, folder: Path, processes: int = 1
) -> Written:
    """Write the studies below `folder`; the same bytes for any number of processes."""
    # The long ones first, so that no process is left alone with one at the end.
    tasks = [(study, scale, seed, folder) for study in sorted(studies, key=expected_trials, reverse=True)]
    progress, total = Progress("writing", sum(expected_trials(study) for study in studies)), Written()
    for study, written in _in_processes(tasks, processes):
        progress.advance(expected_trials(study))
        total += written
    return total


def _in_processes(tasks: Sequence[WriteTask], processes: int) -> Iterator[tuple[InventoryStudy, Written]]:
    if processes == 1:
        yield from map(_write, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(_write, tasks)


def _write(task: WriteTask) -> tuple[InventoryStudy, Written]:
    return task[0], write_study(*task)


def expected_trials(study: InventoryStudy) -> int:
    return study.complete + study.incomplete + study.infeasible


def write_tar(studies: Sequence[InventoryStudy], folder: Path, path: Path, compression: str) -> None:
    """Pack the studies below `folder` into one compressed file, without times and owners."""
    progress = Progress("packing", sum(expected_trials(study) for study in studies))
    with tarfile.open(path, f"w:{compression}") as tar:  # type: ignore[call-overload]
        for study in studies:
            place = folder / study.workload / str(study.batch_size)
            tar.add(place, place.relative_to(folder.parent), filter=_without_origin)
            tar.members.clear()  # half a million of them would stay in memory
            progress.advance(expected_trials(study))


def _without_origin(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


class Progress:
    """A line on stderr, at most one every few seconds: how much is done and the time left."""

    def __init__(self, action: str, total: int) -> None:
        self.action, self.total, self.done = action, total, 0
        self.started = self.shown = time.monotonic()

    def advance(self, amount: int) -> None:
        """Count `amount` as done."""
        self.done += amount
        now = time.monotonic()
        if now - self.shown < 5:
            return
        self.shown = now
        left = (now - self.started) * (self.total - self.done) / self.done
        print(f"{self.action}: {self.done / self.total:.0%}, {left:.0f} s left", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help=f"where to make the folder {FOLDER}")
    parser.add_argument("--scale", type=float, default=0.02, help="fraction of the published number of trials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tar", choices=["bz2", "gz", "xz", "none"], default="none", help="also pack it into one file")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    folder = options.out / FOLDER
    if not 0 < options.scale <= 1:
        parser.error(f"--scale {options.scale:g} is not a fraction; use one above 0, up to 1")
    if folder.exists():
        parser.error(f"{folder} exists already; remove it or choose another folder")
    started = time.monotonic()
    total = write_archive(inventory(), options.scale, options.seed, folder, options.processes)
    seconds = time.monotonic() - started
    print(
        f"{len(inventory())} studies, {total.trials:,} trials, {total.rows:,} measurements, "
        f"{total.bytes / 1e9:.2f} GB in {seconds:.0f} s ({total.rows / seconds:,.0f} measurements/s)"
    )
    if options.tar != "none":
        write_tar(inventory(), folder, options.out / f"{TAR_NAME}.{options.tar}", options.tar)


if __name__ == "__main__":
    main()
