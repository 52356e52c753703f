"""The runner: fills the studies of a sweep. It hands their packs to workers, and has the results stored."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from batchlab.engine.base import Trainer, UpTo, wanted_pack_size
from batchlab.errors import BatchlabError, Interrupted
from batchlab.locked_folders import check_held
from batchlab.run import pack_size_cache
from batchlab.run.displays import Display
from batchlab.run.errand import CalibrateTask
from batchlab.run.executors.choose import StartExecutor
from batchlab.run.executors.deaths import Deaths
from batchlab.run.executors.executor import (
    Event,
    Executor,
    Failed,
    Finished,
    Lost,
    Paused,
    Progress,
    Saved,
    Stopped,
    TaskKey,
)
from batchlab.run.os_signals import handled_by
from batchlab.run.pack import spell_trials
from batchlab.run.pack_size_cache import Calibration
from batchlab.run.progress import StudyProgress
from batchlab.run.resume import UnusableCheckpointError
from batchlab.run.study_run import StudyRun
from batchlab.store.set_aside import SetAside

TICK_SECONDS = 0.5
PATIENCE_SECONDS = 10.0
"""A stop that takes longer is explained: a loop of the user's own is stopped at its next report."""


class Runner:
    """Fills studies with the workers that `start` starts, and shows how far they are."""

    def __init__(
        self,
        runs: list[StudyRun],
        trainer: Trainer,
        start: StartExecutor,
        display: Display,
        aside: SetAside,
        num_together: int = 1,
    ) -> None:
        self._trainer, self._start, self._display, self._aside = trainer, start, display, aside
        self._num_together = num_together
        self._runs = {run.study.batch_size: run for run in runs}
        self._progress = {run.study.batch_size: StudyProgress(run) for run in runs}
        self._deaths = Deaths()
        self._num_running = 0
        self._is_stopping = False
        self._speak_at = math.inf
        """When a stop that is not done by then is explained."""

    def run(self, remark: str | None = None) -> None:
        """Keep the workers busy until every study is finished, or a signal asks for the end.

        A remark is made first, unless there is nothing to do.
        """
        for run in self._runs.values():
            self._settle_pack_size(run)
        if all(run.is_done for run in self._runs.values()):
            return
        executor = self._start(list(self._runs))
        with self._stopping_on_signals(executor), closing(executor), self._display:
            if remark is not None:
                self._display.say(remark)
            self._fill(executor)
        if not all(run.is_done for run in self._runs.values()):
            raise Interrupted(
                "Interrupted; every finished pack and the last checkpoints are kept: run the same again to go on."
            )

    def _fill(self, executor: Executor) -> None:
        while True:
            if not self._is_stopping:
                self._feed(executor)
            if self._num_running == 0:
                return
            for event in executor.events(TICK_SECONDS):
                self._take(event)
            check_held()
            if time.monotonic() > self._speak_at:
                self._speak_at = math.inf
                self._display.say(
                    "Still waiting for trials to reach a point where they can stop (again to stop at once)."
                )
            self._display.show(list(self._progress.values()), executor.num_workers)

    def _feed(self, executor: Executor) -> None:
        """Give every idle worker something to do; large batches, the longest studies as a rule, go first."""
        for run in reversed(self._runs.values()):
            batch_size, progress = run.study.batch_size, self._progress[run.study.batch_size]
            if executor.num_idle and run.pack_size is None and not progress.is_measuring:
                progress.is_measuring = True
                self._num_running += 1
                task = CalibrateTask(run.study, run.study.metaparameters(run.record.points[0]))
                executor.submit(TaskKey(batch_size), task)
            while executor.num_idle and (named_task := run.take_task()):
                name, pack_task = named_task
                self._num_running += 1
                progress.start(name, len(pack_task.points))
                executor.submit(TaskKey(batch_size, name), pack_task, run.shelf(name))

    def _take(self, event: Event) -> None:
        """Take note of what has become of a task; an error ends the run, but for that of a checkpoint."""
        if isinstance(event, Failed) and not isinstance(event.error, UnusableCheckpointError):
            raise event.error
        assert event.key is not None
        run, pack = self._runs[event.key.batch_size], event.key.pack
        if isinstance(event, Progress):
            assert pack is not None
            self._progress[event.key.batch_size].advance(pack, event.standing)
            return
        if not isinstance(event, Lost):
            self._deaths.forget(event.key)
        if isinstance(event, Saved):
            return
        self._num_running -= 1
        if isinstance(event, Lost):
            self._go_on_without(event, run, pack)
        elif pack is not None:
            self._take_end(event, run, pack)
        elif isinstance(event, Finished):
            self._use_calibration(run, Calibration(*event.result))

    def _take_end(self, event: Failed | Finished | Paused | Stopped, run: StudyRun, pack: str) -> None:
        """Take note of how a pack has ended."""
        if isinstance(event, Failed):
            self._set_aside(run.shelf(pack).path, event.error)
            run.put_back(pack, has_paused=False)
        elif isinstance(event, Paused):
            run.put_back(pack, has_paused=True)
        elif isinstance(event, Finished):
            if event.result.remark:
                self._display.say(event.result.remark)
            run.keep_part(pack, event.result)
            self._progress[run.study.batch_size].finish(pack)

    def _use_calibration(self, run: StudyRun, measured: Calibration) -> None:
        """Train a study's trials in packs of the size that was measured, and remember it for the next run."""
        pack_size_cache.remember(run.study, measured)
        progress = self._progress[run.study.batch_size]
        progress.seconds_per_trial_step, progress.is_measuring = measured.seconds_per_trial_step, False
        run.choose_pack_size(measured.pack_size)

    def _go_on_without(self, lost: Lost, run: StudyRun, pack: str | None) -> None:
        """Line up again the task of a worker that died, unless too many have; the user hears of the first."""
        size, is_first = run.study.batch_size, not self._deaths.has_any
        if pack is None:
            self._deaths.add(lost, f"{CalibrateTask.doing} at batch size {size}", saves=False)
            self._progress[size].is_measuring = False
        else:
            work = f"training {spell_trials(run.trials_of(pack))} at batch size {size}"
            self._deaths.add(lost, work, saves=True)
            run.put_back(pack, has_paused=False)
        if is_first:
            self._display.say(f"A worker died ({lost.why}): another resumes its task from the last checkpoint.")

    def _set_aside(self, path: Path, error: BatchlabError) -> None:
        """Keep a checkpoint that cannot be gone on from out of the way: its pack trains from the start."""
        self._aside.take(path, str(error))
        problem = f"Cannot resume from {path}: {error}."
        self._display.say(f"{problem} It is set aside in {self._aside.folder}, and its trials start again.")

    def _settle_pack_size(self, run: StudyRun) -> None:
        """Take the pack size from the record, the spec, the trainer or the calibration file; else it is measured."""
        wanted = wanted_pack_size(self._trainer, run.study, self._num_together)
        remembered = pack_size_cache.recall(run.study) if self._num_together == 1 else None
        if remembered:
            self._progress[run.study.batch_size].seconds_per_trial_step = remembered.seconds_per_trial_step
        if run.is_finished:
            return
        if run.pack_size is not None:
            run.open_round()
        elif not isinstance(wanted, UpTo):
            run.choose_pack_size(wanted)
        elif remembered and remembered.pack_size <= wanted.most:
            run.choose_pack_size(remembered.pack_size)

    @contextmanager
    def _stopping_on_signals(self, executor: Executor) -> Iterator[None]:
        """Turn the first Ctrl-C, SIGTERM or SIGHUP into a clean stop; the second ends at once, and that is all."""
        is_ending = False

        def stop(number: int, frame: FrameType | None) -> None:
            nonlocal is_ending
            if is_ending:
                return
            if self._is_stopping:
                is_ending = True
                raise Interrupted("Interrupted twice; what came after the last checkpoints is lost.")
            self._is_stopping, self._speak_at = True, time.monotonic() + PATIENCE_SECONDS
            executor.stop()
            self._display.say("Stopping: writing checkpoints (again to stop at once).")

        with handled_by(stop, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            yield
