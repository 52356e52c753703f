"""A lab made of formulas: steps follow S = S_min + E_min / B, and points far from the best are slow or diverge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure

from batchlab.core.goal import Goal
from batchlab.core.measurement import Curve, Measurements
from batchlab.core.result import StudyResult
from batchlab.core.space import Range, SearchSpace
from batchlab.core.trial import Status, Trial
from batchlab.plots.draw import draw_sheet
from batchlab.plots.paper import PaperFigureData, paper_data

SPACE = SearchSpace(
    {
        "learning_rate": Range(min=1e-4, max=1e-1, scale="log"),
        "momentum": Range(min=0.0, max=0.9999, scale="reverse_log"),
    }
)


@dataclass(frozen=True)
class Synthetic:
    """A workload whose best trial at batch size B meets `goal` after about `s_min` + `e_min` / B steps."""

    goal: Goal
    s_min: float
    e_min: float
    batch_sizes: tuple[int, ...]
    num_complete: int
    floor: float = 0.4
    """The best value that can be reached, relative to the threshold (from the other side where high is good)."""

    smoothing: tuple[float | None, ...] = (None,)
    length: float = 12.0
    """Complete trials train to this multiple of the best trial's steps."""

    def studies(self, workload: str) -> list[StudyResult]:
        """Return one study for each batch size; the same name gives the same numbers."""
        return [self._study(workload, batch_size) for batch_size in self.batch_sizes]

    def _study(self, workload: str, batch_size: int) -> StudyResult:
        rng = np.random.default_rng([batch_size, *workload.encode()])
        best_steps = self.s_min + self.e_min / batch_size
        end_step = int(self.length * best_steps)
        trials: list[Trial] = []
        curves: list[Curve] = []
        num_complete = 0
        while num_complete < self.num_complete:
            trial_id = len(trials)
            point = SPACE.point(rng.random(2))
            off = self._off(point, batch_size)
            is_diverged = off > 1.2
            steps = best_steps * (1 + abs(off) ** 1.5 + 0.15 * rng.exponential())
            smoothing = self.smoothing[trial_id % len(self.smoothing)]
            if smoothing is not None:
                point["label_smoothing"] = smoothing
            curve = self._curve(trial_id, steps, end_step // 20 if is_diverged else end_step, rng)
            status = Status.INFEASIBLE if is_diverged else Status.COMPLETE
            last_step = int(curve.steps[-1])
            trials.append(Trial(trial_id=trial_id, status=status, metaparameters=point, last_step=last_step))
            curves.append(curve)
            num_complete += not is_diverged
        return StudyResult(workload, batch_size, tuple(trials), Measurements.of(curves), SPACE, end_step)

    def _off(self, point: Mapping[str, float], batch_size: int) -> float:
        """Return how far the effective learning rate lies from the best one, in decades; positive is too large."""
        critical = self.e_min / self.s_min
        best = 0.3 * batch_size / (batch_size + critical)
        return float(np.log10(point["learning_rate"] / (1 - point["momentum"]) / best))

    def _curve(self, trial_id: int, steps: float, last_step: int, rng: np.random.Generator) -> Curve:
        at = np.unique(np.concatenate([[0], np.geomspace(1, max(1, last_step), 70).astype(np.int64)]))
        relative = self.floor + (1 - self.floor) * (steps / np.maximum(at, 0.05 * steps)) ** 0.7
        relative *= 1 + 0.01 * rng.normal(size=len(at)) * (at > 0)
        threshold = self.goal.threshold
        values = threshold * relative if self.goal.is_lower_better else threshold / relative
        return Curve(trial_id, at, {self.goal.metric: values})


Results = Callable[[str], Sequence[StudyResult] | None]

_SCALES = {
    "mnist": ("val/classification_error < 0.01", 150, 6e4, 0.4, (1, 2, 16, 128, 1024, 8192)),
    "fashion_mnist": ("val/classification_error < 0.1", 150, 5e4, 0.55, (2, 16, 128, 1024, 8192)),
    "cifar_10": ("val/classification_error < 0.3", 800, 2e5, 0.6, (2, 16, 128, 1024, 8192)),
    "imagenet": ("val/classification_error < 0.25", 3000, 8e7, 0.9, (64, 128, 1024, 8192)),
    "open_images_v4": ("val/average_precision > 0.31", 4000, 5e7, 0.7, (64, 128, 1024, 8192)),
    "common_crawl": ("val/cross_entropy_error < 3.9", 30000, 2e7, 0.9, (32, 256, 1024, 8192)),
    "lm1b": (
        "val/cross_entropy_error < 3.9",
        10000,
        8e6,
        0.9,
        (16, 32, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
    ),
}
"""Dataset -> goal, S_min, E_min, floor and batch sizes."""


def make_workload(name: str, num_complete: int = 12) -> Synthetic:
    """Return a workload of the paper, in small; the goal of Figure 1 is met at every batch size."""
    base, *rest = name.split("/")
    dataset = {"mnist_subsets": "mnist", "imagenet_subsets": "imagenet", "solution_quality": rest[0]}.get(base, base)
    goal, s_min, e_min, floor, batch_sizes = _SCALES[dataset]
    slower = 3.0 if name.endswith("/sgd") else 1.0
    return Synthetic(
        goal=Goal.read(goal),
        s_min=slower * s_min,
        e_min=e_min,
        batch_sizes=batch_sizes,
        num_complete=num_complete,
        floor=floor,
        smoothing=(None, 0.01, 0.1, 0.1) if name.startswith("imagenet/") else (None,),
        length=400.0 if base == "solution_quality" else 12.0,
    )


@pytest.fixture(scope="session")
def lab() -> dict[str, list[StudyResult]]:
    """All workloads of the paper's figures, each made when it is first asked for."""

    class Lab(dict[str, list[StudyResult]]):
        def __missing__(self, name: str) -> list[StudyResult]:
            self[name] = make_workload(name).studies(name)
            return self[name]

    return Lab()


@pytest.fixture(scope="session")
def results(lab: dict[str, list[StudyResult]]) -> Results:
    """What `paper_data` asks, answered by the whole lab."""
    return lambda name: lab[name]


@pytest.fixture(scope="session")
def paper(results: Results) -> Callable[[int], PaperFigureData]:
    """The data of a figure of the whole lab, with the published points, computed once."""
    return cache(lambda number: paper_data(number, results, published=True))


@pytest.fixture(scope="session")
def drawn(paper: Callable[[int], PaperFigureData]) -> Callable[[int], Figure]:
    """The figure of the whole lab, drawn once."""
    return cache(lambda number: draw_sheet(paper(number)))
