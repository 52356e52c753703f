"""One study being filled: which packs are left, what is kept, and how it ends."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from batchlab.core.measurement import Measurements
from batchlab.core.study import Study
from batchlab.core.trial import Status, Trial
from batchlab.engine.base import Point
from batchlab.run.environment import environment
from batchlab.run.pack import PackResult, PackTask
from batchlab.search.race import Outcome, Race, packs
from batchlab.search.samplers import draw_points
from batchlab.store.study_folder import StudyFolder, StudyRecord

FIRST_PAUSE = 64
"""Steps of a pack's first turn, where a study has several packs."""


@dataclass(frozen=True)
class _Part:
    """A finished pack, as it lies in the study's folder."""

    measurements: Measurements
    outcomes: list[Outcome]
    wall_seconds: float
    round: int
    environment: dict[str, Any]


class StudyRun:
    """Drives one study from its points to its stored result; everything it decides follows from stored parts."""

    def __init__(self, study: Study, folder: StudyFolder) -> None:
        self.study, self._folder = study, folder
        if not folder.has_record:
            folder.save_record(StudyRecord(study=study, points=tuple(draw_points(study))))
        self._record = folder.record()
        self._parts: dict[str, _Part] = {}
        self._pending: dict[str, range] = {}
        self._pauses: dict[str, int | None] = {}
        self.running: dict[str, range] = {}
        self.race = Race(study, len(self._record.points))
        if self.is_finished:
            folder.tidy()
        else:
            self._parts = {name: _read_part(*part) for name, part in folder.parts().items()}

    @property
    def is_finished(self) -> bool:
        """Whether the study's outcome is stored."""
        return self._record.state == "finished"

    @property
    def record(self) -> StudyRecord:
        """What study.json says now."""
        return self._record

    @property
    def pack_size(self) -> int | None:
        """Trials trained together, once chosen."""
        return self._record.pack_size

    def choose_pack_size(self, pack_size: int) -> None:
        """Settle the pack size, for this run and every resumed one."""
        self._record = self._record.model_copy(update={"pack_size": pack_size})
        self._folder.save_record(self._record)
        self.open_round()

    def open_round(self) -> None:
        """Line up the packs that are left of the current round; close it, and the study, when none is."""
        while not self.is_finished:
            number, trial_ids = len(self.race.rounds), self.race.rounds[-1]
            names = {f"{number}-{index}": pack for index, pack in enumerate(packs(trial_ids, self.pack_size or 1))}
            self._pending = {name: pack for name, pack in names.items() if name not in self._parts}
            if self._pending:
                takes_turns = len(names) > 1 and self.study.race_factor is not None and self.race.best_steps is None
                self._pauses = dict.fromkeys(names, FIRST_PAUSE if takes_turns else None)
                return
            if not self.race.close_round(self.outcomes):
                self._finish()

    @property
    def outcomes(self) -> dict[int, Outcome]:
        """The outcomes of all trials of finished packs."""
        return {outcome.trial_id: outcome for part in self._parts.values() for outcome in part.outcomes}

    def take_task(self) -> tuple[str, PackTask] | None:
        """Return the next pack to train and its name, or None where none waits.

        Packs of one study take turns: nobody trains long before all have trained for a while, because whoever
        meets the goal first spares the others the rest.
        """
        if not self._pending:
            return None
        name = min(self._pending, key=lambda waiting: self._pauses[waiting] or 0)
        trial_ids = self.running[name] = self._pending.pop(name)
        points = [Point(i, self.study.metaparameters(self._record.points[i])) for i in trial_ids]
        end_step = self.race.known_end(self.outcomes)
        return name, PackTask(self.study, points, self._folder.checkpoint_path(name), end_step, self._pauses[name])

    def put_back(self, name: str) -> None:
        """Line up a pack again that has paused; its next turn is twice as long as all before."""
        self._pending[name] = self.running.pop(name)
        self._pauses[name] = 2 * (self._pauses[name] or FIRST_PAUSE)

    def keep_part(self, name: str, result: PackResult) -> None:
        """Store a finished pack; with the last one of a round the next begins or the study ends."""
        outcome = {
            "outcomes": [asdict(outcome) for outcome in result.outcomes],
            "wall_seconds": result.wall_seconds,
            "round": len(self.race.rounds),
            "environment": environment(),
        }
        self._folder.save_part(name, result.measurements, outcome)
        self._parts[name] = _read_part(result.measurements, outcome)
        del self.running[name]
        if not self._pending and not self.running:
            self.open_round()

    def _finish(self) -> None:
        end_step = self.race.end_step
        rows = [_until(part.measurements, end_step) for part in self._parts.values()]
        measurements = Measurements.of([table.curve(i) for table in rows for i in np.unique(table.trial_id)])
        trials = [trial for part in self._parts.values() for trial in self._trials(part, end_step)]
        counts = {status: sum(trial.status is status for trial in trials) for status in Status}
        note = None
        if counts[Status.COMPLETE] < self.study.trials:
            complete = f"{counts[Status.COMPLETE]} of {self.study.trials} trials complete"
            note = f"{complete}: all {len(trials)} points were tried, {counts[Status.INFEASIBLE]} diverged"
        self._record = self._record.model_copy(
            update={
                "state": "finished",
                "best_steps": self.race.best_steps,
                "end_step": end_step,
                "trained_steps": sum(outcome.last_step for outcome in self.outcomes.values()),
                "wall_seconds": sum(part.wall_seconds for part in self._parts.values()),
                "counts": counts,
                "num_measurements": len(measurements),
                "note": note,
            }
        )
        self._folder.finish(self._record, sorted(trials, key=lambda trial: trial.trial_id), measurements)

    def _trials(self, part: _Part, end_step: int) -> list[Trial]:
        pack_steps = max(1, sum(outcome.last_step for outcome in part.outcomes))
        rows, trials = _until(part.measurements, end_step), []
        for outcome in part.outcomes:
            is_infeasible = outcome.trial_id in self.race.infeasible
            trials.append(
                Trial(
                    trial_id=outcome.trial_id,
                    status=Status.INFEASIBLE if is_infeasible else Status.COMPLETE,
                    metaparameters=self.study.metaparameters(self._record.points[outcome.trial_id]),
                    last_step=int(rows.step[rows.trial_id == outcome.trial_id].max()),
                    diverged_step=outcome.diverged_step if is_infeasible else None,
                    round=part.round,
                    wall_seconds=part.wall_seconds * outcome.last_step / pack_steps,
                    environment=part.environment,
                )
            )
        return trials


def _until(measurements: Measurements, end_step: int) -> Measurements:
    return measurements.where(measurements.step <= end_step)


def _read_part(measurements: Measurements, outcome: dict[str, Any]) -> _Part:
    return _Part(
        measurements,
        [Outcome(**each) for each in outcome["outcomes"]],
        outcome["wall_seconds"],
        outcome["round"],
        outcome["environment"],
    )
