"""The runner: fills the studies of a sweep. It hands their packs to workers, and has what comes back stored."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Protocol

from batchlab.core.growth import fixed_digest
from batchlab.core.sweep import Sweep
from batchlab.engine.base import Trainer, UpTo, wanted_pack_size
from batchlab.engine.observer import Observer, observed_metrics
from batchlab.errors import BatchlabError, InputError, Interrupted
from batchlab.held import check_held
from batchlab.optim.registry import with_defaults
from batchlab.processes import end_if_imported_by_worker
from batchlab.report.answers import summarise, with_plan
from batchlab.report.shown import ShownSummary
from batchlab.run import pack_size_cache
from batchlab.run.check_trainer import check_own_trainer
from batchlab.run.displays import Display, default_display
from batchlab.run.errand import CalibrateTask
from batchlab.run.executors.choose import StartExecutor, check_counts, choose_executor
from batchlab.run.executors.deaths import Deaths, spell_trials
from batchlab.run.executors.executor import Event, Executor, Failed, Finished, Lost, Paused, Progress, Saved
from batchlab.run.executors.torchrun import assembled, check_left_to_torchrun
from batchlab.run.finished import as_stored
from batchlab.run.growth import check_budget, check_same_trainer
from batchlab.run.pack_size_cache import Calibration
from batchlab.run.progress import StudyProgress
from batchlab.run.resume import UnusableCheckpointError
from batchlab.run.study_run import StudyRun
from batchlab.run.trainers import make_trainer
from batchlab.store.lab import Lab
from batchlab.store.set_aside import SetAside

CALIBRATE = "calibrate"
TICK_SECONDS = 0.5
PATIENCE_SECONDS = 10.0
"""After which a stop that is not done is spoken of: a loop of the user's own hears of it when it next reports."""


class OwnSweep(Protocol):
    """A sweep that brings its own trainer, as `batchlab.TorchSweep` does."""

    @property
    def spec(self) -> Sweep:
        """What is searched, as data."""
        ...

    def make_trainer(self) -> Trainer:
        """Return who trains it."""
        ...


def run_sweep(
    sweep: Sweep | OwnSweep,
    lab: Path | str,
    *,
    data_dir: Path | None = None,
    num_workers: int | None = None,
    num_gpus: int | None = None,
    executor: str = "local",
    address: str | None = None,
    trainer: Trainer | None = None,
    observers: Sequence[Observer] = (),
    display: Display | None = None,
    only: range | None = None,
    changed_code: bool = False,
) -> ShownSummary | None:
    """Train all studies of a sweep, store them in a lab, going on from whatever is there, and return the answer.

    A sweep that is more than the stored one (more trials, batch sizes, a longer race, `confirm`) grows it.
    `trainer` replaces the one that the workload's name would get: your own training code, say. It is tried first
    (`check_trainer`), and every sweep is checked, wherever it comes from.
    `observers` of a built-in network look at the gradient of each microbatch; what they report is stored as metrics.
    They are sent to worker processes, as a trainer is: let them be picklable.
    There is one worker process for each core, or for each GPU where the engine may use them: `num_workers` and
    `num_gpus` say otherwise. With `executor="ray"` they are on a Ray cluster, the one at `address` if that is given.
    `display` shows progress: by default a table in a notebook, and nothing elsewhere; `run.displays` has others.
    A sweep of your own network (`TorchSweep`) brings its trainer; where its file is another than the one that a lab
    was begun with, it is refused unless `changed_code` says that this is meant.
    With `only`, these points are trained and the studies stay unfinished: None is returned while no study is finished.
    Where torchrun has started several processes they train each trial together: the first is the run, and the others
    end in here, with its exit code.
    Raises Interrupted after a signal, once the running packs have written their checkpoints; before there are any,
    while a dataset is read say, SIGTERM raises KeyboardInterrupt as Ctrl-C does.
    """
    end_if_imported_by_worker()
    check_counts(num_workers, num_gpus)
    _check_observers(observers, sweep, trainer)
    given, lab = sweep, Path(lab)
    sweep = given if isinstance(given, Sweep) else given.spec
    is_ours = isinstance(given, Sweep) and trainer is None

    def make() -> Trainer:
        if not isinstance(given, Sweep):
            return given.make_trainer()
        return make_trainer(given, data_dir, observers) if trainer is None else trainer

    with (
        _handled_by(signal.default_int_handler, signal.SIGTERM, signal.SIGHUP),
        assembled(sweep.engine) as gang,
    ):
        if gang is not None and gang.serves:
            gang.serve(make)
        if gang is not None:
            check_left_to_torchrun(num_workers, num_gpus, executor)
            sweep = gang.spread(sweep)
        made = make()
        if is_ours:
            sweep = with_defaults(sweep)
        if gang is None:
            start = choose_executor(executor, sweep, made, num_workers, num_gpus, address)
        else:
            start = gang.start(sweep, made)
        if not is_ours and tuple(as_stored(sweep, lab)[1]) != sweep.search.batch_sizes:
            check_own_trainer(made, sweep)
        store, label = Lab.create(lab), None if is_ours else getattr(made, "label", type(made).__qualname__)
        with store.locked():
            before, num_together = store.workers_per_trial(sweep.name), sweep.engine.workers_per_trial
            sweep = store.admitted(sweep)
            if trainer is None and not sweep.workload.is_own_loop:
                for study in sweep.studies():
                    check_budget(store.study_folder(sweep.name, study.batch_size), study)
            if not changed_code:
                _check_same_trainer(label, sweep, store)
            store.admit(sweep)
            runs = _study_runs(sweep, store, only, label, changed_code)
            runner = _Runner(runs, made, start, display or default_display(), SetAside(lab), num_together)
            runner.run(_remark(before, num_together))
    results = store.results(sweep)
    if not results.results:
        return None
    return with_plan(store, results, summarise(results.results, sweep.search.hardest_goal))


def _check_observers(observers: Sequence[Observer], sweep: Sweep | OwnSweep, trainer: Trainer | None) -> None:
    if observers and (trainer is not None or not isinstance(sweep, Sweep)):
        way = "let your trainer ask them" if trainer is not None else "give them to TorchSweep(observers=...)"
        raise InputError(f"observers: run_sweep gives them to the networks of batchlab only; {way}.")
    observed_metrics([], observers)


def _study_runs(
    sweep: Sweep, store: Lab, only: range | None, own_trainer: str | None, changed_code: bool
) -> list[StudyRun]:
    return [
        StudyRun(
            study,
            store.study_folder(sweep.name, study.batch_size),
            keep_states=sweep.engine.keep_states,
            checkpoint_seconds=sweep.engine.checkpoint_seconds,
            only=only,
            own_trainer=own_trainer,
            changed_code=changed_code,
            sweep=fixed_digest(sweep),
        )
        for study in sweep.studies()
    ]


def _check_same_trainer(trainer: str | None, sweep: Sweep, store: Lab) -> None:
    """Raise LabError where a study was trained by somebody else: before anything is written."""
    for folder in (store.study_folder(sweep.name, size) for size in sweep.search.batch_sizes):
        if folder.has_record:
            check_same_trainer(folder, trainer)


def _remark(before: int | None, num_together: int) -> str | None:
    """Return what is to be said where a sweep goes on with another number of workers for each trial."""
    if before in (None, num_together):
        return None
    return (
        f"engine.workers_per_trial was {before} and is {num_together} now: what is finished stays, and what is not "
        "goes on with the same results, to rounding."
    )


class _Runner:
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
        """When a stop that is not done by then is spoken of."""

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
            raise Interrupted("Interrupted; every finished pack and the last checkpoints are kept.")

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
                executor.submit((batch_size, CALIBRATE), task)
            while executor.num_idle and (named_task := run.take_task()):
                name, pack_task = named_task
                self._num_running += 1
                progress.start(name, len(pack_task.points))
                executor.submit((batch_size, name), pack_task, run.shelf(name))

    def _take(self, event: Event) -> None:
        if isinstance(event, Failed) and not isinstance(event.error, UnusableCheckpointError):
            raise event.error
        batch_size, name = event.key
        run, progress = self._runs[batch_size], self._progress[batch_size]
        if isinstance(event, Progress):
            progress.advance(name, event.standing)
            return
        if not isinstance(event, Lost):
            self._deaths.forget(event.key)
        if isinstance(event, Saved):
            return
        self._num_running -= 1
        if isinstance(event, Lost):
            self._go_on_without(event, run, name)
        if isinstance(event, Failed):
            self._set_aside(run.shelf(name).path, event.error)
        if isinstance(event, Paused | Failed):
            run.put_back(name, has_paused=isinstance(event, Paused))
        if not isinstance(event, Finished):
            return
        if name == CALIBRATE:
            measured = Calibration(*event.result)
            pack_size_cache.remember(run.study, measured)
            progress.seconds_per_trial_step = measured.seconds_per_trial_step
            progress.is_measuring = False
            run.choose_pack_size(measured.pack_size)
        else:
            if event.result.remark:
                self._display.say(event.result.remark)
            run.keep_part(name, event.result)
            progress.finish(name)

    def _go_on_without(self, lost: Lost, run: StudyRun, name: str) -> None:
        """Line up again what a worker was at that died, unless too many have; the first is spoken of."""
        size, is_first = run.study.batch_size, not self._deaths.has_any
        if name == CALIBRATE:
            self._deaths.add(lost, f"measuring batch size {size}", saves=False)
            self._progress[size].is_measuring = False
        else:
            work = f"training {spell_trials(run.trials_of(name))} at batch size {size}"
            self._deaths.add(lost, work, saves=True)
            run.put_back(name, has_paused=False)
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

        with _handled_by(stop, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            yield


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None], *numbers: signal.Signals) -> Iterator[None]:
    """Have signals of these numbers handled by `handler` for a while."""
    heard = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]  # as nohup has it
    try:
        before = {number: signal.signal(number, handler) for number in heard}
    except ValueError:  # not in the main thread: whoever called us handles signals
        before = {}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
