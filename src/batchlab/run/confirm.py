"""Confirming a sweep that has been run: its best points, trained again with fresh seeds."""

from __future__ import annotations

from pathlib import Path

from batchlab.core.confirmation import Confirm
from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.engine.base import Trainer
from batchlab.errors import InputError, LabError, shown
from batchlab.report.shown import ShownSummary
from batchlab.run.displays import Display
from batchlab.run.from_spec import why_not_from_spec
from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab
from batchlab.store.study_folder import StudyFolder


def confirm_sweep(
    lab: Path | str,
    name: str,
    seeds: int | None = None,
    points: int | None = None,
    *,
    data_dir: Path | None = None,
    num_workers: int | None = None,
    num_gpus: int | None = None,
    executor: str = "local",
    address: str | None = None,
    trainer: Trainer | None = None,
    display: Display | None = None,
) -> ShownSummary | None:
    """Train up to `points` of the best points of every batch size again, with `seeds` fresh seeds each.

    None means what the sweep is confirmed with already, else 6 seeds and 3 points.
    """
    return run_sweep(
        sweep_to_confirm(Path(lab), name, seeds, points, is_own_trainer=trainer is not None),
        lab,
        data_dir=data_dir,
        num_workers=num_workers,
        num_gpus=num_gpus,
        executor=executor,
        address=address,
        trainer=trainer,
        display=display,
    )


def sweep_to_confirm(
    lab: Path, name: str, seeds: int | None = None, points: int | None = None, *, is_own_trainer: bool = False
) -> Sweep:
    """Return a stored sweep as it is run to be confirmed; nothing is trained. An error where it cannot be."""
    store = Lab.open(lab)
    stored = store.sweep(name)
    why = why_not_from_spec(stored)
    if (spec := stored.spec) is None:
        raise LabError(f"Sweep {name} in lab {lab} {why}. Run one of your own.")
    confirm = confirmation_asked(spec, seeds, points)
    if why is not None and not is_own_trainer:
        raise LabError(f"Sweep {name} in lab {lab} {why}. {_way_out(lab, spec, confirm)}")
    _check_finished(store, spec)
    return spec.model_copy(update={"search": spec.search.model_copy(update={"confirm": confirm})})


def _way_out(lab: Path, sweep: Sweep, confirm: Confirm) -> str:
    """Return how what is trained by code of the user's own is confirmed."""
    again = f'Run its file again with --set "sweep.confirm={{seeds={confirm.seeds}, points={confirm.points}}}"'
    if sweep.workload.is_own_loop:
        return f"{again}."
    return f'{again}, or give its trainer: batchlab.confirm_sweep("{lab}", "{sweep.name}", trainer=...).'


def confirmation_asked(sweep: Sweep, seeds: int | None = None, points: int | None = None) -> Confirm:
    """Return how a sweep is to be confirmed: as it is already, or with more; InputError for less."""
    before = sweep.search.confirm or Confirm()
    asked = {
        "seeds": before.seeds if seeds is None else seeds,
        "points": before.points if points is None else points,
    }
    for name, number in asked.items() if sweep.search.confirm else ():
        has = getattr(before, name)
        if number < has:
            raise InputError(
                f"{name} = {shown(number)} is less than the {has} that sweep {sweep.name} is confirmed with, which can "
                f"only become more. Give {has} or more, or leave it out."
            )
    return Confirm.parse(asked, "confirm")


def _check_finished(lab: Lab, sweep: Sweep) -> None:
    """Raise LabError where there is something left to search: it would be trained before anything is confirmed."""
    states = {size: _search_state(lab, sweep, size) for size in sweep.search.batch_sizes}
    unfinished = ", ".join(f"{size}{state}" for size, state in states.items() if state is not None)
    if unfinished:
        raise LabError(
            f"Sweep {sweep.name} in lab {lab.folder} is not finished at batch size {unfinished}. Run it to its end "
            "first: batchlab run, with the settings that it was last run with but for --only."
        )


def _search_state(lab: Lab, sweep: Sweep, batch_size: int) -> str | None:
    """Return what is to be said behind a batch size whose search has something left to train; None of another."""
    study = lab.study_folder(sweep.name, batch_size).undisturbed(_finished_study)
    if study is None:
        return ""
    return " (growing)" if lab.is_growing(sweep, batch_size, study) else None


def _finished_study(folder: StudyFolder) -> Study | None:
    record = folder.record() if folder.has_begun() else None
    return record.study if record is not None and record.state == "finished" else None
