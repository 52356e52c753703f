"""The timetable of K trials: their batch sizes and metaparameters at every update, as their schedule has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from batchlab.core.clock import Clock, Clocks, Horizon
from batchlab.core.study import Study
from batchlab.engine.base import Point
from batchlab.optim.base import Now, NowOfRow
from batchlab.optim.batch_sizes import BatchSizes
from batchlab.optim.registry import load_schedule


class Timetable:
    """What holds at which update. Metaparameters are float32, in every precision of the parameters."""

    def __init__(self, study: Study, points: Sequence[Point], num_examples: int, device: torch.device) -> None:
        self._horizon = Horizon(study.max_steps, study.batch_size, num_examples)
        self._schedule, self._device = load_schedule(study.workload.schedule), device
        metaparameters = [point.metaparameters for point in points]
        self.batch_sizes = BatchSizes(study, metaparameters, self._schedule, self._horizon)
        self._values = {
            name: np.array([each[name] for each in metaparameters], dtype=np.float32) for name in metaparameters[0]
        }
        self.columns = {name: self._tensor(values) for name, values in self._values.items()}
        """Those that no schedule has touched, [K, 1] each."""

    def ahead(self, clock: Clock, most_updates: int, most_examples: int) -> Ahead:
        """Return what holds in the next updates: so many that each trial sees at most `most_examples`, or one."""
        sizes = self.batch_sizes.ahead(clock, most_updates, most_examples)
        start = np.full(len(next(iter(self._values.values()))), self._horizon.batch_size, dtype=np.float32)
        values = {"batch_size": start, **self._values}
        scheduled = self.batch_sizes.others(self._schedule(values, Clocks.of(clock, sizes), self._horizon))
        columns = {name: self._tensor(values) for name, values in scheduled.items()}
        return Ahead(clock.step, sizes, self._values, scheduled, self.columns, columns)

    def keep(self, rows: np.ndarray) -> None:
        """Go on with some of the trials."""
        self._values = {name: values[rows] for name, values in self._values.items()}
        self.columns = {name: self._tensor(values) for name, values in self._values.items()}

    def _tensor(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values[..., None])).to(self._device)


class Ahead:
    """The batch sizes of the next updates and their metaparameters: numbers, and columns on the device."""

    def __init__(
        self,
        first_step: int,
        batch_sizes: Sequence[int],
        values: Mapping[str, np.ndarray],
        scheduled: Mapping[str, np.ndarray],
        columns: Mapping[str, Tensor],
        scheduled_columns: Mapping[str, Tensor],
    ) -> None:
        self.batch_sizes = batch_sizes
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
