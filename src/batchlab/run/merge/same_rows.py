"""Whether two folders of one study have the same rows of the trials and replicates that are in both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from batchlab.core.confirmation import REPLICATE_STRIDE
from batchlab.core.measurement import Curve, Measurements
from batchlab.errors import LabError
from batchlab.files import is_folder
from batchlab.run.part import read_parts
from batchlab.run.stored_outcomes import confirmed_part
from batchlab.store.study_folder import StudyFolder


def check_same_rows(one: StudyFolder, other: StudyFolder) -> None:
    """Raise LabError where two folders of one study have other points, or other rows of a trial or a replicate."""
    if not (one.has_record and other.has_record):
        return
    here, there = one.record(), other.record()
    shared = min(len(here.points), len(there.points))
    if here.points[:shared] != there.points[:shared]:
        raise LabError(f"{one.folder} and {other.folder} have other points. Only labs of one sweep can be merged.")
    _check_agree(rows_of_trials(one), rows_of_trials(other), one, other)
    _check_agree(rows_of_replicates(one), rows_of_replicates(other), one, other)


def rows_of_trials(folder: StudyFolder) -> dict[int, Curve]:
    """Return the longest curve of every trial that a study has, finished or not."""
    record = folder.record()
    if record.state == "finished":
        return _longest([folder.result().measurements])
    assert record.study is not None, "an imported study is finished"
    return _longest(part.measurements for part in read_parts(folder, record.study).values())


def rows_of_replicates(folder: StudyFolder) -> dict[int, Curve]:
    """Return the longest curve of every replicate that a study has, by its number; it may not have all that it asks."""
    record = folder.record()
    if record.study is None or record.state != "finished":
        return {}
    confirmed = confirmed_part(folder)
    parts = read_parts(folder.confirming, record.study) if is_folder(folder.confirming.folder) else {}
    return _longest(part.measurements for part in (confirmed, *parts.values()) if part is not None)


def _longest(tables: Iterable[Measurements]) -> dict[int, Curve]:
    curves: dict[int, Curve] = {}
    for table in tables:
        for trial_id in np.unique(table.trial_id).tolist():
            curve = table.curve(trial_id)
            if trial_id not in curves or len(curve.steps) > len(curves[trial_id].steps):
                curves[trial_id] = curve
    return curves


def _check_agree(mine: Mapping[int, Curve], others: Mapping[int, Curve], one: StudyFolder, other: StudyFolder) -> None:
    for number in sorted(mine.keys() & others.keys()):
        if not _agree(mine[number], others[number]):
            raise LabError(
                f"{_spelled(number)} has other rows in {one.folder} than in {other.folder}: they were computed "
                "differently. Train it again in one of them, or merge them into different labs."
            )


def _spelled(number: int) -> str:
    """Return what trains under a number.

    >>> _spelled(3), _spelled(1048579)
    ('Trial 3', 'Replicate 1 of trial 3')
    """
    replicate, trial_id = divmod(number, REPLICATE_STRIDE)
    return f"Replicate {replicate} of trial {trial_id}" if replicate else f"Trial {trial_id}"


def _agree(one: Curve, other: Curve) -> bool:
    """Return whether two curves are equal at all steps to which both have trained."""
    end = min(int(one.steps[-1]), int(other.steps[-1]))
    mine, others = (_columns(curve.where(curve.steps <= end)) for curve in (one, other))
    return mine.keys() == others.keys() and all(
        np.array_equal(values, others[name], equal_nan=True) for name, values in mine.items()
    )


def _columns(curve: Curve) -> dict[str, Any]:
    return {"step": curve.steps, "examples": curve.examples, **curve.metrics}
