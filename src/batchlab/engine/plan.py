"""The metaparameters of K trials at every update, as their schedule has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from batchlab.core.clock import Clock, Clocks, Horizon
from batchlab.engine.base import Point
from batchlab.optim.base import Now, NowOfRow
from batchlab.optim.schedules import Schedule


class Plan:
    """What is planned for K trials. Their metaparameters are float32, as are their parameters."""

    def __init__(self, points: Sequence[Point], schedule: Schedule, horizon: Horizon, device: torch.device) -> None:
        names = points[0].metaparameters
        self._values = {
            name: np.array([point.metaparameters[name] for point in points], dtype=np.float32) for name in names
        }
        self._schedule, self._horizon, self._device = schedule, horizon, device
        self.columns = {name: self._tensor(values) for name, values in self._values.items()}
        """Those that no schedule has touched, [K, 1] each."""

    def ahead(self, clock: Clock, num_updates: int) -> Ahead:
        """Return what holds in the next updates."""
        clocks = Clocks.of(clock, num_updates, self._horizon.batch_size)
        scheduled = self._schedule(self._values, clocks, self._horizon)
        columns = {name: self._tensor(values) for name, values in scheduled.items()}
        return Ahead(clock.step, self._values, scheduled, self.columns, columns)

    def keep(self, rows: np.ndarray) -> None:
        """Go on with some of the trials."""
        self._values = {name: values[rows] for name, values in self._values.items()}
        self.columns = {name: self._tensor(values) for name, values in self._values.items()}

    def _tensor(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values[..., None])).to(self._device)


class Ahead:
    """The metaparameters of the next updates: numbers, and columns on the device."""

    def __init__(
        self,
        first_step: int,
        values: Mapping[str, np.ndarray],
        scheduled: Mapping[str, np.ndarray],
        columns: Mapping[str, Tensor],
        scheduled_columns: Mapping[str, Tensor],
    ) -> None:
        self._first_step, self._values, self._scheduled = first_step, values, scheduled
        self._columns, self._scheduled_columns = columns, scheduled_columns

    def now(self, index: int) -> Now:
        """Return what holds in one of the updates."""
        scheduled = {name: columns[index] for name, columns in self._scheduled_columns.items()}
        return Now(self._first_step + index + 1, {**self._columns, **scheduled})

    def now_of_row(self, index: int, row: int) -> NowOfRow:
        """Return what holds for one trial in one of the updates."""
        values = {name: float(values[row]) for name, values in self._values.items()}
        scheduled = {name: float(values[index, row]) for name, values in self._scheduled.items()}
        return NowOfRow(self._first_step + index + 1, {**values, **scheduled})
