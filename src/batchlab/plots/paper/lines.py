"""The workloads of the paper's figures, and their studies in a lab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from batchlab.analysis import is_measured
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.errors import InputError
from batchlab.published.trials import paper_trials

Results = Callable[[str], Sequence[StudyResult] | None]
"""Gives the studies of a workload by its name; None where the lab does not have it."""

NOT_HERE = "is not in this lab"
MINIMUM = "minimum over the trials"
"""What the paper's curves are, for the legend."""

PUBLISHED = "published (read off the picture)"


@dataclass(frozen=True)
class Line:
    """One curve of a panel: a workload and the goal it is measured by."""

    label: str
    workload: str
    goal_text: str

    @property
    def goal(self) -> Goal:
        """The goal; strict, as in the paper."""
        return Goal.read(self.goal_text)

    @property
    def num_trials(self) -> int:
        """The first complete trials to use, or as many as there are."""
        return paper_trials(self.workload)


def error_below(threshold: float) -> str:
    """Return the goal of an image workload.

    >>> error_below(0.01)
    'val/classification_error < 0.01'
    """
    return f"val/classification_error < {threshold:g}"


def entropy_below(threshold: float) -> str:
    """Return the goal of a language workload.

    >>> entropy_below(3.9)
    'val/cross_entropy_error < 3.9'
    """
    return f"val/cross_entropy_error < {threshold:g}"


NESTEROV = "Nesterov momentum"
PRECISION_ABOVE = "val/average_precision > 0.31"

MAIN_LINES = {
    "Simple CNN on MNIST": Line(NESTEROV, "mnist/simple_cnn_base/nesterov_momentum", error_below(0.01)),
    "Simple CNN on Fashion MNIST": Line(NESTEROV, "fashion_mnist/simple_cnn_base/nesterov_momentum", error_below(0.1)),
    "ResNet-8 on CIFAR-10": Line(NESTEROV, "cifar_10/resnet_8/nesterov_momentum", error_below(0.3)),
    "ResNet-50 on ImageNet": Line(NESTEROV, "imagenet/resnet_50/nesterov_momentum", error_below(0.25)),
    "ResNet-50 on Open Images": Line(NESTEROV, "open_images_v4/resnet_50/nesterov_momentum", PRECISION_ABOVE),
    "Transformer on LM1B": Line(NESTEROV, "lm1b/transformer_base/nesterov_momentum", entropy_below(3.9)),
    "Transformer on Common Crawl": Line(
        NESTEROV, "common_crawl/transformer_base/nesterov_momentum", entropy_below(3.9)
    ),
    "VGG-11 on ImageNet": Line(NESTEROV, "imagenet/vgg_11/nesterov_momentum", error_below(0.35)),
    "LSTM on LM1B": Line(NESTEROV, "lm1b/lstm/nesterov_momentum", entropy_below(3.9)),
}
"""The nine workloads of Figures 1 and 8, by title."""


def transformer(label: str, size: str, goal: float, optimizer: str = "nesterov_momentum") -> Line:
    """Return the curve of a Transformer on LM1B.

    >>> transformer("Wide", "wide", 4.2).workload
    'lm1b/transformer_wide/nesterov_momentum'
    """
    return Line(label, f"lm1b/transformer_{size}/{optimizer}", entropy_below(goal))


def studies_of(results: Results, workload: str, metric: str) -> list[StudyResult]:
    """Return the studies of a workload in ascending batch size; InputError, fit for a panel, where there are none."""
    found = results(workload)
    if not found:
        raise InputError(f"{workload} {NOT_HERE}")
    measured = [study for study in found if is_measured(study.measurements, metric)]
    if not measured:
        raise InputError(f"{metric} was not measured for {workload} in this lab")
    return sorted(measured, key=lambda study: study.batch_size)


class LatestResults:
    """Results that remember the workload asked for last, and no other: a workload may fill much of the memory."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._workload: str | None = None
        self._studies: Sequence[StudyResult] | None = None

    def __call__(self, workload: str) -> Sequence[StudyResult] | None:
        """Return the studies of a workload."""
        if workload != self._workload:
            self._studies = None  # let go of the last one before the next one is read
            self._studies, self._workload = self._results(workload), workload
        return self._studies
