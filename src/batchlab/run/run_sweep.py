"""Running a sweep, the front door: everything is checked, then the runner fills its studies."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from batchlab.core.growth import fixed_digest
from batchlab.core.sweep import Sweep
from batchlab.engine.base import Trainer
from batchlab.engine.observer import Observer, observed_metrics
from batchlab.errors import InputError, shown
from batchlab.optim.registry import with_defaults
from batchlab.processes import end_if_imported_by_worker
from batchlab.report.answers import summarise, with_plan
from batchlab.report.shown import ShownSummary
from batchlab.run.check_trainer import check_own_trainer
from batchlab.run.displays import Display, default_display
from batchlab.run.executors.choose import check_counts, choose_executor
from batchlab.run.executors.torchrun import assembled, check_left_to_torchrun
from batchlab.run.finished import as_stored
from batchlab.run.growth import check_budget, check_same_trainer
from batchlab.run.os_signals import handled_by
from batchlab.run.runner import Runner
from batchlab.run.study_run import StudyRun
from batchlab.run.trainers import make_trainer
from batchlab.store.lab import Lab
from batchlab.store.set_aside import SetAside


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
        handled_by(signal.default_int_handler, signal.SIGTERM, signal.SIGHUP),
        assembled(sweep.engine) as gang,
    ):
        if gang is not None:
            if gang.serves:
                gang.serve(make)
            check_left_to_torchrun(num_workers, num_gpus, executor)
            sweep = gang.spread(sweep)
        made = make()
        _check_only(only, sweep)
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
            sweep, remark = _admit(sweep, store, label, changed_code, knows_schedule=trainer is None)
            runs = _study_runs(sweep, store, only, label, changed_code)
            num_together = sweep.engine.workers_per_trial
            runner = Runner(runs, made, start, display or default_display(), SetAside(lab), num_together)
            runner.run(remark)
    results = store.results(sweep)
    if not results.results:
        return None
    return with_plan(store, results, summarise(results.results, sweep.search.hardest_goal))


def _check_observers(observers: Sequence[Observer], sweep: Sweep | OwnSweep, trainer: Trainer | None) -> None:
    if observers and (trainer is not None or not isinstance(sweep, Sweep)):
        way = "let your trainer ask them" if trainer is not None else "give them to TorchSweep(observers=...)"
        raise InputError(f"observers: run_sweep gives them to the networks of batchlab only; {way}.")
    observed_metrics([], observers)


def _check_only(only: range | None, sweep: Sweep) -> None:
    """Raise InputError for points that a sweep has not, of which nothing would be trained, or something else."""
    if only is None:
        return
    points = min(study.num_points for study in sweep.studies())
    if isinstance(only, range) and only and min(only) >= 0 and max(only) < points:
        return
    raise InputError(
        f"only = {shown(only)}: the points of this sweep are 0..{points - 1}; give a range of them, such as range(4)."
    )


def _admit(
    sweep: Sweep, store: Lab, own_trainer: str | None, changed_code: bool, *, knows_schedule: bool
) -> tuple[Sweep, str | None]:
    """Store a sweep that may be trained here, and return it as it is stored, with what is to be said of that.

    Nothing is written before all of its studies are known to go on with this spec and this trainer.
    """
    before = store.workers_per_trial(sweep.name)
    sweep = store.admitted(sweep)
    if knows_schedule:
        _check_same_budgets(sweep, store)
    if not changed_code:
        _check_same_trainer(own_trainer, sweep, store)
    store.admit(sweep)
    return sweep, _remark(before, sweep.engine.workers_per_trial)


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


def _check_same_budgets(sweep: Sweep, store: Lab) -> None:
    """Raise SpecError where a study was begun with another budget that its schedule goes by."""
    for study in [] if sweep.workload.is_own_loop else sweep.studies():
        check_budget(store.study_folder(sweep.name, study.batch_size), study)


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
