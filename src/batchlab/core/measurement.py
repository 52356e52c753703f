"""Measurements: the evaluated steps of a study's trials, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Curve:
    """The evaluated steps of one trial, in ascending order."""

    trial_id: int
    steps: np.ndarray  # [num_evals] int64
    metrics: Mapping[str, np.ndarray]  # name -> [num_evals] float64

    def __post_init__(self) -> None:
        if np.any(np.diff(self.steps) <= 0):
            raise ValueError(f"the steps of trial {self.trial_id} do not ascend")
        for name, values in self.metrics.items():
            if values.shape != self.steps.shape:
                raise ValueError(f"{name} of trial {self.trial_id} has {values.shape}, not {self.steps.shape}")


@dataclass(frozen=True)
class Measurements:
    """All rows of one study, sorted by trial and step: a table of columns of one length."""

    trial_id: np.ndarray  # [num_rows] int64
    step: np.ndarray  # [num_rows] int64
    metrics: Mapping[str, np.ndarray]  # name -> [num_rows] float64; NaN where not measured

    @classmethod
    def of(cls, curves: Sequence[Curve]) -> Measurements:
        """Join curves, in the order of their trial ids."""
        curves = sorted(curves, key=lambda curve: curve.trial_id)
        names = list(dict.fromkeys(name for curve in curves for name in curve.metrics))
        return cls(
            trial_id=_join([np.full(len(curve.steps), curve.trial_id) for curve in curves], np.int64),
            step=_join([curve.steps for curve in curves], np.int64),
            metrics={
                name: _join(
                    [curve.metrics.get(name, np.full(len(curve.steps), np.nan)) for curve in curves], np.float64
                )
                for name in names
            },
        )

    def __len__(self) -> int:
        return len(self.step)

    def where(self, keep: np.ndarray) -> Measurements:
        """Return the rows for which `keep` is true."""
        return Measurements(
            self.trial_id[keep], self.step[keep], {name: values[keep] for name, values in self.metrics.items()}
        )

    def curve(self, trial_id: int) -> Curve:
        """Return the rows of one trial."""
        rows = self.where(self.trial_id == trial_id)
        return Curve(trial_id, rows.step, rows.metrics)


def _join(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype, copy=False)
