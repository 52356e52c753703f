"""The rows of a pack in training, from its first evaluation to its last, and who has met the goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from batchlab.core.clock import constant_examples
from batchlab.core.measurement import Measurements
from batchlab.core.study import Study
from batchlab.engine.loop import Evaluated
from batchlab.run.standing import Standing


class Recorder:
    """The rows of a pack so far, and who has met the goal."""

    def __init__(self, study: Study) -> None:
        self._study, self._goal = study, study.goal
        self._rows: list[Evaluated] = []
        self.goal_steps: dict[int, int] = {}
        self.best_value: float | None = None
        self._num_evaluations, self._evaluation_seconds = 0, 0.0

    def add(self, evaluated: Evaluated) -> None:
        """Keep the metrics of the live trials; a step that is there already, from before a pause, is left as it is."""
        if self._rows and evaluated.step <= self._rows[-1].step:
            return
        if evaluated.examples is None:
            evaluated = replace(evaluated, examples=constant_examples(evaluated.step, self._study.batch_size))
        self._rows.append(evaluated)
        values = evaluated.column(self._goal.metric)
        for trial_id in evaluated.trial_ids[self._goal.is_met(values)].tolist():
            self.goal_steps.setdefault(trial_id, evaluated.step)
        self.best_value = self._goal.best(values, self.best_value)
        self._num_evaluations += 1
        self._evaluation_seconds += evaluated.seconds

    @property
    def last_step(self) -> int:
        """The step of the last row, -1 where there is none."""
        return self._rows[-1].step if self._rows else -1

    @property
    def last_examples(self) -> int:
        """The examples of the last row, 0 where there is none."""
        return self._rows[-1].examples or 0 if self._rows else 0

    def standing(self) -> Standing:
        """Return how far the pack is, as of its last evaluation."""
        return Standing(
            step=self._rows[-1].step,
            num_live=len(self._rows[-1].trial_ids),
            best_steps=min(self.goal_steps.values(), default=None),
            best_value=self.best_value,
            num_evaluations=self._num_evaluations,
            evaluation_seconds=self._evaluation_seconds,
        )

    def measurements(self) -> Measurements:
        """Return all rows as columns, sorted by trial and step; NaN where a metric was not measured."""
        trial_id = np.concatenate([row.trial_ids for row in self._rows])
        num_live = [len(row.trial_ids) for row in self._rows]
        step = np.repeat([row.step for row in self._rows], num_live)
        examples = np.repeat(np.array([row.examples for row in self._rows], dtype=np.int64), num_live)
        order = np.lexsort((step, trial_id))
        names = dict.fromkeys(name for row in self._rows for name in row.metrics)
        metrics = {name: np.concatenate([row.column(name) for row in self._rows])[order] for name in names}
        return Measurements(trial_id[order], step[order], metrics, examples[order])

    def restore(self, columns: Mapping[str, np.ndarray]) -> None:
        """Take up the rows of a checkpoint; one at the end of a budget that has grown since is no longer evaluated."""
        names = [name for name in columns if name not in ("trial_id", "step", "examples")]
        evaluated = set(self._study.evaluation.steps(self._study.max_steps))
        for step in np.unique(columns["step"]):
            if int(step) not in evaluated:
                continue
            rows = columns["step"] == step
            metrics = {name: columns[name][rows] for name in names}
            examples = int(columns["examples"][rows][0]) if "examples" in columns else None  # not before format 4
            self.add(Evaluated(int(step), columns["trial_id"][rows], metrics, examples=examples))
        self._num_evaluations = 0
