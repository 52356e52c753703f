"""Measurements: the evaluated steps of a study's trials, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from batchlab.core.clock import constant_examples


@dataclass(frozen=True)
class Curve:
    """The evaluated steps of one trial, in ascending order."""

    trial_id: int
    steps: np.ndarray  # [num_evals] int64
    metrics: Mapping[str, np.ndarray]  # name -> [num_evals] float64
    examples: np.ndarray | None = None  # [num_evals] int64, seen before each, repeats counted; None: not counted

    def __post_init__(self) -> None:
        if np.any(np.diff(self.steps) <= 0):
            raise ValueError(f"the steps of trial {self.trial_id} do not ascend")
        columns = self.metrics if self.examples is None else {"examples": self.examples, **self.metrics}
        for name, values in columns.items():
            if values.shape != self.steps.shape:
                raise ValueError(f"{name} of trial {self.trial_id} has {values.shape}, not {self.steps.shape}")

    def where(self, keep: np.ndarray) -> Curve:
        """Return the steps for which `keep` is true."""
        metrics = {name: values[keep] for name, values in self.metrics.items()}
        return Curve(self.trial_id, self.steps[keep], metrics, None if self.examples is None else self.examples[keep])


@dataclass(frozen=True)
class Measurements:
    """All rows of one study, sorted by trial and step: a table of columns of one length."""

    trial_id: np.ndarray  # [num_rows] int64
    step: np.ndarray  # [num_rows] int64
    metrics: Mapping[str, np.ndarray]  # name -> [num_rows] float64; NaN where not measured
    examples: np.ndarray | None = None
    """[num_rows] int64: the examples seen before each row, repeats counted. None in what an older batchlab or somebody
    else has stored: then they are those of one batch size (`counted`)."""

    @classmethod
    def of(cls, curves: Sequence[Curve]) -> Measurements:
        """Join curves, in the order of their trial ids."""
        curves = sorted(curves, key=lambda curve: curve.trial_id)
        names = list(dict.fromkeys(name for curve in curves for name in curve.metrics))
        counts = [curve.examples for curve in curves if curve.examples is not None]
        if len(counts) not in (0, len(curves)):
            raise ValueError("some of the curves tell their examples and others do not")
        return cls(
            trial_id=_join([np.full(len(curve.steps), curve.trial_id) for curve in curves], np.int64),
            step=_join([curve.steps for curve in curves], np.int64),
            metrics={
                name: _join(
                    [curve.metrics.get(name, np.full(len(curve.steps), np.nan)) for curve in curves], np.float64
                )
                for name in names
            },
            examples=_join(counts, np.int64) if counts else None,
        )

    def __len__(self) -> int:
        return len(self.step)

    def where(self, keep: np.ndarray) -> Measurements:
        """Return the rows for which `keep` is true."""
        return Measurements(
            self.trial_id[keep],
            self.step[keep],
            {name: values[keep] for name, values in self.metrics.items()},
            None if self.examples is None else self.examples[keep],
        )

    def counted(self, batch_size: int) -> Measurements:
        """Return the rows with their examples; where nobody has counted them, all updates had this batch size."""
        if self.examples is not None:
            return self
        return replace(self, examples=constant_examples(self.step, batch_size))

    def curve(self, trial_id: int) -> Curve:
        """Return the rows of one trial."""
        rows = self.where(self.trial_id == trial_id)
        return Curve(trial_id, rows.step, rows.metrics, rows.examples)


def _join(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype, copy=False)
