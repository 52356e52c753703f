"""One study being filled: which packs are left, what is kept, and how it ends.

First the search: rounds of the race, until it is closed. Then, where the spec asks for it, its best points are
trained again with fresh seeds. Everything decided follows from what is stored, so that a study may be thrown away
and opened again at any moment.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from batchlab.core.measurement import Curve, Measurements
from batchlab.core.study import Study
from batchlab.core.sweep import CHECKPOINT_SECONDS
from batchlab.core.trial import Status, Trial
from batchlab.engine.base import Point
from batchlab.files import is_there
from batchlab.run.confirm_run import ConfirmRun
from batchlab.run.environment import environment
from batchlab.run.finished import is_confirmed
from batchlab.run.growth import open_study
from batchlab.run.pack import PackResult, PackTask
from batchlab.run.part import Part, farthest, read_parts
from batchlab.run.shelf import Shelf
from batchlab.run.stored_outcomes import complete_outcomes, confirmed_part
from batchlab.search.race import Outcome, Race, best_steps, packs
from batchlab.store.pack_name import BEFORE, pack_name
from batchlab.store.seal import damaged
from batchlab.store.study_folder import StudyFolder
from batchlab.store.study_record import StudyRecord

FIRST_PAUSE = 64
"""Steps of a pack's first turn, where a study has several packs."""


class StudyRun:
    """Drives one study from its points to its stored result.

    With `only`, these trials are trained and nothing is decided: the study stays unfinished.
    """

    def __init__(
        self,
        study: Study,
        home: StudyFolder,
        *,
        keep_states: bool = False,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        only: range | None = None,
        own_trainer: str | None = None,
        changed_code: bool = False,
        sweep: str | None = None,
    ) -> None:
        self.study, self._home, self._keep_states, self._only = study, home, keep_states, only
        self._every = checkpoint_seconds
        self._folder = open_study(study, home, own_trainer, sweep, changed_code=changed_code)
        self._record = self._folder.record()
        self._parts: dict[str, Part] = {}
        self._outcomes: dict[int, Outcome] | None = None
        self._pending: dict[str, tuple[int, ...]] = {}
        self._pauses: dict[str, int | None] = {}
        self.running: dict[str, tuple[int, ...]] = {}
        self.race = Race(study, len(self._record.points))
        self.confirm_run: ConfirmRun | None = None
        if self.is_searched:
            self._folder.tidy()
            self._begin_confirming()
        else:
            self._parts = read_parts(self._folder, study)
            self._check_parts()

    def _check_parts(self) -> None:
        for name, part in self._parts.items():
            if not {outcome.trial_id for outcome in part.outcomes} <= set(range(len(self._record.points))):
                raise damaged(self._folder.part_path(name), "it is of trials that the study has not")

    @property
    def is_searched(self) -> bool:
        """Whether the outcome of the search is stored."""
        return self._record.state == "finished"

    @property
    def is_finished(self) -> bool:
        """Whether all that was asked for is stored."""
        return self.is_searched and self.confirm_run is None

    @property
    def is_training(self) -> bool:
        """Whether a worker has a pack of its trials or replicates."""
        return bool(self.running or (self.confirm_run and self.confirm_run.running))

    @property
    def num_replicates(self) -> int:
        """How many replicates confirm the study, at the most: none where only some of its points are trained."""
        return self.study.num_replicates if self._only is None else 0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to train: it is finished, or has all the trials that it was to train only."""
        return self.is_finished or (self._only is not None and not self._lacking())

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
        """Line up the packs that are left of the current round; close it, and the search, when none is."""
        while not self.is_searched:
            lacking = self._lacking()
            if lacking:
                self._line_up(lacking)
                return
            if self._only is not None:
                return
            if not self.race.close_round(self.outcomes):
                self._finish()
                self._begin_confirming()

    def _lacking(self) -> list[int]:
        if self._only is None:
            return self.race.lacking(self.outcomes)
        return [i for i in self._only if i < len(self._record.points) and i not in self.outcomes]

    def _line_up(self, trial_ids: list[int]) -> None:
        self._pending = {pack_name(ids): ids for ids in self._packs(trial_ids)}
        is_race_open = self.study.race_factor is not None and self._known_end() == self.study.max_steps
        takes_turns = len(self._pending) > 1 and is_race_open and not self.study.workload.is_own_loop
        self._pauses = dict.fromkeys(self._pending, FIRST_PAUSE if takes_turns else None)

    def _packs(self, trial_ids: list[int]) -> list[tuple[int, ...]]:
        """Return the trials in packs; those that left a state together go on together, from there."""
        together = []
        for ids in self._folder.states():
            if set(ids) & set(trial_ids):
                self._folder.resume_state(pack_name(ids))
                together.append(ids)
                trial_ids = [i for i in trial_ids if i not in ids]
        return [*together, *packs(trial_ids, self.pack_size or 1)]

    @property
    def outcomes(self) -> dict[int, Outcome]:
        """The outcomes of all trials of finished packs."""
        if self._outcomes is None:
            known = farthest(list(self._parts.values()))
            self._outcomes = {trial_id: outcome for trial_id, (outcome, _) in known.items()}
        return self._outcomes

    @property
    def best_steps(self) -> int | None:
        """The fewest steps to the goal in finished packs, of this run or before; that of the search once it is over."""
        if self.is_searched:
            return self._record.best_steps
        return best_steps(self.study, [self.outcomes[i] for i in self.race.racing if i in self.outcomes])

    def _known_end(self) -> int:
        return self.race.known_end(self.outcomes)

    def take_task(self) -> tuple[str, PackTask] | None:
        """Return the next pack to train and its name, or None where none waits.

        Packs of one study take turns: nobody trains long before all have trained for a while, because whoever
        meets the goal first spares the others the rest.
        """
        return self._next_trials() if self.confirm_run is None else self.confirm_run.take_task()

    def shelf(self, name: str) -> Shelf:
        """Return where the checkpoints of a pack are kept."""
        run = self.confirm_run
        shelf = Shelf(self._folder, name, self.study) if run is None else run.shelf(name)
        return replace(shelf, loop=self._home.loop_path(name)) if self.study.workload.is_own_loop else shelf

    def _next_trials(self) -> tuple[str, PackTask] | None:
        if not self._pending:
            return None
        name = min(self._pending, key=lambda waiting: self._pauses[waiting] or 0)
        trial_ids = self.running[name] = self._pending.pop(name)
        return name, PackTask(
            study=self.study,
            points=[Point(i, self.study.metaparameters(self._record.points[i])) for i in trial_ids],
            end_step=self._known_end(),
            resume=self.shelf(name).read(trial_ids),
            checkpoint_seconds=self._every,
            pause_step=self._pauses[name],
            racing=None if self._only is not None else frozenset(self.race.racing),
            keeps_state=self._keep_states,
        )

    def trials_of(self, name: str) -> tuple[int, ...]:
        """Return the trials, or replicates, of a pack in training."""
        return self.running[name] if self.confirm_run is None else self.confirm_run.running[name]

    def put_back(self, name: str, *, has_paused: bool = True) -> None:
        """Line up a pack again; after a pause its next turn is twice as long as all before."""
        if self.confirm_run is not None:
            self.confirm_run.put_back(name)
            return
        self._pending[name] = self.running.pop(name)
        if has_paused:
            self._pauses[name] = 2 * (self._pauses[name] or FIRST_PAUSE)

    def keep_part(self, name: str, result: PackResult) -> None:
        """Store a finished pack; with the last one of a round the next begins or the search ends."""
        part = Part(
            result.measurements, tuple(result.outcomes), result.trained_steps, result.wall_seconds, environment()
        )
        if self.confirm_run is not None:
            self.confirm_run.keep_part(name, part)
            self._end_confirming()
            return
        if result.state is not None:
            self._folder.save_state(name, result.state, self.study.fingerprint)
        self._folder.save_part(name, part.measurements, part.record(), self.study.fingerprint)
        self._parts[name], self._outcomes = part, None
        del self.running[name]
        if not self._pending and not self.running:
            self.open_round()

    def _finish(self) -> None:
        """Store the outcome of the search; trials that were tried and are not part of it are stored apart."""
        end_step, known = self.race.end_step, farthest(list(self._parts.values()))
        counted = {i: known[i] for i in range(self.race.num_tried)}
        curves = {i: self._curve(i, part, end_step) for i, (_, part) in counted.items()}
        measurements = Measurements.of(list(curves.values()))
        trials = [self._trial(outcome, part, curves[i]) for i, (outcome, part) in counted.items()]
        counts = {status: sum(trial.status is status for trial in trials) for status in Status}
        aside = _aside([part.only(set(known) - set(counted)) for part in self._parts.values()])
        self._record = self._record.model_copy(
            update={
                "state": "finished",
                "best_steps": self.race.best_steps,
                "end_step": end_step,
                "trained_steps": sum(part.trained_steps for part in self._parts.values()),
                "wall_seconds": sum(part.wall_seconds for part in self._parts.values()),
                "counts": counts,
                "num_measurements": len(measurements),
                "note": self._note(counts, len(trials), max(trial.last_step for trial in trials)),
            }
        )
        self._record = self._folder.finish(self._record, trials, measurements, aside)

    def _note(self, counts: dict[Status, int], num_tried: int, last_step: int) -> str | None:
        if counts[Status.COMPLETE] >= self.study.trials:
            is_short = (
                self.study.workload.is_own_loop and self.race.best_steps is None and last_step < self.race.end_step
            )
            return f"no trial has reported after step {last_step:,}" if is_short else None
        complete = f"{counts[Status.COMPLETE]} of {self.study.trials} trials complete"
        return f"{complete}: all {num_tried} points were tried, {counts[Status.INFEASIBLE]} diverged"

    def _curve(self, trial_id: int, part: Part, end_step: int) -> Curve:
        """Return a trial's curve to the end of the race; of a loop that first reports later, that nothing is known."""
        curve = _until(part.measurements, end_step).curve(trial_id)
        if len(curve.steps):
            return curve
        return Curve(trial_id, np.array([0]), {self.study.goal.metric: np.array([np.nan])}, np.array([0]))

    def _trial(self, outcome: Outcome, part: Part, curve: Curve) -> Trial:
        is_infeasible = outcome.trial_id in self.race.infeasible
        return Trial(
            trial_id=outcome.trial_id,
            status=Status.INFEASIBLE if is_infeasible else Status.COMPLETE,
            metaparameters=self.study.metaparameters(self._record.points[outcome.trial_id]),
            last_step=int(curve.steps[-1]),
            diverged_step=outcome.diverged_step if is_infeasible else None,
            round=self.race.round_of(outcome.trial_id),
            wall_seconds=part.seconds_of(outcome),
            environment=part.environment,
        )

    def _begin_confirming(self) -> None:
        """Line up the replicates that the spec asks for; without any the study is complete."""
        if self.num_replicates:
            complete = complete_outcomes(self._folder)
            if is_confirmed(self.study, complete, self._folder.confirmation()):
                self._folder.end_confirming()
            else:
                self._keep_confirmed()
                self.confirm_run = ConfirmRun(self._folder, self._record, complete, self._every)
        self._end_confirming()

    def _keep_confirmed(self) -> None:
        """Take replicates that a smaller confirmation trained for the larger one."""
        before, confirming = confirmed_part(self._folder), self._folder.confirming
        if before is not None and not is_there(confirming.part_path(BEFORE)):
            confirming.make_room()
            confirming.save_part(BEFORE, before.measurements, before.record(), self.study.fingerprint)

    def _end_confirming(self) -> None:
        if self.confirm_run is not None and self.confirm_run.is_done:
            self.confirm_run.finish()
            self.confirm_run, self._record = None, self._folder.record()
        if self.is_finished and self._only is None and self._folder is not self._home:
            self._home.exchange()
            self._folder = self._home


def _aside(parts: list[Part]) -> tuple[Measurements, dict[str, Any]] | None:
    """Return trials that were trained and are not part of the result, as they are stored; None where there are none."""
    aside = farthest(parts)
    if not aside:
        return None
    rows = Measurements.of([part.measurements.curve(trial_id) for trial_id, (_, part) in aside.items()])
    outcomes = tuple(outcome for outcome, _ in aside.values())
    return rows, Part(rows, outcomes, 0, 0.0, parts[0].environment).record()


def _until(measurements: Measurements, end_step: int) -> Measurements:
    return measurements.where(measurements.step <= end_step)
