"""The best points of a finished search, trained again with fresh seeds: which replicates are left, what is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from batchlab.core.confirmation import REPLICATE_STRIDE, Confirmation, Replicate, replicate_id
from batchlab.core.measurement import Measurements
from batchlab.engine.base import Point
from batchlab.run.pack import PackTask
from batchlab.run.part import Part, farthest, read_parts
from batchlab.run.shelf import Shelf
from batchlab.search.confirm import end_of_replicates, points_to_confirm
from batchlab.search.race import Outcome, packs
from batchlab.store.pack_name import pack_name
from batchlab.store.study_folder import StudyFolder
from batchlab.store.study_record import StudyRecord


class ConfirmRun:
    """Trains the replicates of one study. They race against nobody, so their order and packs decide nothing."""

    def __init__(
        self, folder: StudyFolder, record: StudyRecord, complete: list[Outcome], checkpoint_seconds: float
    ) -> None:
        assert record.study is not None and record.study.confirm is not None
        self._study, self._folder, self._points = record.study, folder, record.points
        self._seeds, self._every = record.study.confirm.seeds, checkpoint_seconds
        self._trial_ids = points_to_confirm(record.study, complete)
        self.end_step = end_of_replicates(record.study, record.best_steps) if record.best_steps is not None else 0
        """Where a replicate ends that has not met the goal."""
        folder.confirming.make_room()
        self._parts = read_parts(folder.confirming, record.study)
        self.running: dict[str, tuple[int, ...]] = {}
        names = {pack_name(ids): ids for ids in packs(self._lacking(), record.pack_size or 1)}
        self._pending = names

    @property
    def num_replicates(self) -> int:
        """How many replicates there are to train, those that are done included."""
        return len(self._trial_ids) * self._seeds

    @property
    def num_done(self) -> int:
        """How many replicates have met the goal, diverged or reached their end."""
        return self.num_replicates - len(self._lacking())

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to train."""
        return not (self._pending or self.running)

    def _ids(self) -> list[int]:
        return [replicate_id(trial_id, i) for trial_id in self._trial_ids for i in range(1, self._seeds + 1)]

    def _lacking(self) -> list[int]:
        known = farthest(list(self._parts.values()))
        return sorted(i for i in self._ids() if i not in known or not self._is_known(known[i][0]))

    def _is_known(self, outcome: Outcome) -> bool:
        if outcome.goal_step is None or outcome.goal_step > self.end_step:
            return outcome.is_known_to(self.end_step)
        # At the end of a budget that has grown since, a replicate may have met the goal where none is evaluated now.
        return self._study.is_evaluated(outcome.goal_step)

    def take_task(self) -> tuple[str, PackTask] | None:
        """Return the next pack of replicates and its name, or None where none waits."""
        if not self._pending:
            return None
        name, ids = self._pending.popitem()
        self.running[name] = ids
        points = [Point(i, self._study.metaparameters(self._points[i % REPLICATE_STRIDE])) for i in ids]
        resume = self.shelf(name).read(ids)
        return name, PackTask(self._study, points, self.end_step, resume, self._every, stops_at_goal=True)

    def shelf(self, name: str) -> Shelf:
        """Return where the checkpoints of a pack are kept."""
        return Shelf(self._folder.confirming, name, self._study)

    def put_back(self, name: str) -> None:
        """Line up a pack again that was stopped, or whose worker was lost."""
        self._pending[name] = self.running.pop(name)

    def keep_part(self, name: str, part: Part) -> None:
        """Store a finished pack of replicates."""
        part = _until_goal(part)
        self._folder.confirming.save_part(name, part.measurements, part.record(), self._study.fingerprint)
        self._parts[name] = part
        del self.running[name]

    def finish(self) -> None:
        """Store what became of all replicates."""
        known = farthest(list(self._parts.values()))
        kept = {number: known[number] for number in self._ids()}
        curves = [part.measurements.curve(number) for number, (_, part) in kept.items()]
        measurements = Measurements.of([curve.where(curve.steps <= self.end_step) for curve in curves])
        confirmation = Confirmation(
            goal=self._study.goal,
            seeds=self._seeds,
            trial_ids=self._trial_ids,
            end_step=self.end_step,
            replicates=tuple(self._replicate(outcome, part) for outcome, part in kept.values()),
        )
        self._folder.finish_confirmation(confirmation, measurements)

    def _replicate(self, outcome: Outcome, part: Part) -> Replicate:
        replicate, trial_id = divmod(outcome.trial_id, REPLICATE_STRIDE)
        has_met = outcome.goal_step is not None and outcome.goal_step <= self.end_step
        has_diverged = outcome.diverged_step is not None and outcome.diverged_step <= self.end_step
        return Replicate(
            trial_id=trial_id,
            replicate=replicate,
            goal_step=outcome.goal_step if has_met else None,
            last_step=min(outcome.last_step, self.end_step),
            diverged_step=outcome.diverged_step if has_diverged else None,
            wall_seconds=part.seconds_of(outcome),
        )


def _until_goal(part: Part) -> Part:
    """Return a pack of replicates as if each had ended where it met the goal, while others of its pack trained on."""
    outcomes = tuple(_ended_at_goal(outcome) for outcome in part.outcomes)
    ends = {outcome.trial_id: outcome.last_step for outcome in outcomes}
    rows = part.measurements
    last = np.array([ends[i] for i in rows.trial_id.tolist()], dtype=np.int64)
    return replace(part, outcomes=outcomes, measurements=rows.where(rows.step <= last))


def _ended_at_goal(outcome: Outcome) -> Outcome:
    if outcome.goal_step is None:
        return outcome
    return Outcome(outcome.trial_id, outcome.goal_step, outcome.goal_step)
