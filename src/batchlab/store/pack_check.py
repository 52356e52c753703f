"""Whether a finished pack, or the checkpoint of an unfinished one, is what its name and its study say."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from batchlab.core.confirmation import REPLICATE_STRIDE
from batchlab.core.measurement import Measurements
from batchlab.core.study import Study
from batchlab.errors import DamagedError
from batchlab.store.consistency import examples_problem
from batchlab.store.pack_name import names_pack
from batchlab.store.seal import damaged

_STEPS = ("last_step", "goal_step", "diverged_step")


def check_part(path: Path, rows: Measurements, record: Mapping[str, Any], study: Study) -> None:
    """Raise DamagedError where a finished pack is not one of the study."""
    for problem in _part_problems(path, rows, record, study):
        raise damaged(path, problem)


def check_checkpoint(path: Path, arrays: Mapping[str, np.ndarray], study: Study) -> None:
    """Raise DamagedError where what a checkpoint says of its trials cannot be; its program is not looked at."""
    for problem in _checkpoint_problems(path, arrays, study):
        raise damaged(path, problem)


def repeats(told: Mapping[Path, Any]) -> Iterator[tuple[Path, DamagedError]]:
    """Yield every finished pack whose trials have the very results of another one before it: it is a copy.

    A trial may be in two packs, where it trained on; but its steps and seconds must not count twice.
    """
    seen: dict[str, Path] = {}
    for path, outcomes in told.items():
        first = seen.setdefault(json.dumps(outcomes, sort_keys=True), path)
        if first != path:
            yield path, damaged(path, f"it is {first.name} once more")


def _part_problems(path: Path, rows: Measurements, record: Mapping[str, Any], study: Study) -> Iterator[str]:
    """Yield what is wrong; each test assumes that those before it passed."""
    outcomes = record.get("outcomes")
    if not (isinstance(outcomes, list) and outcomes and all(map(_is_outcome, outcomes))):
        yield "it tells no outcomes"
        return
    if not all(_is_amount(record.get(name, 0)) for name in ("trained_steps", "wall_seconds")):
        yield "it does not tell how long it took"
    if not isinstance(record.get("environment"), dict):
        yield "it does not tell where it was trained"
    yield from _row_problems(path, rows, {each["trial_id"] for each in outcomes}, study)
    if len({each["trial_id"] for each in outcomes}) < len(outcomes):
        yield "it has a trial twice"
    for outcome in outcomes:
        yield from _outcome_problems(rows, outcome, study)


def _is_outcome(outcome: Any) -> bool:
    return (
        isinstance(outcome, dict)
        and outcome.keys() <= {"trial_id", *_STEPS}
        and all(_is_number(outcome.get(name)) for name in ("trial_id", "last_step"))
        and all(outcome.get(name) is None or _is_number(outcome[name]) for name in _STEPS)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _outcome_problems(rows: Measurements, outcome: dict[str, Any], study: Study) -> Iterator[str]:
    """Yield what of an outcome the rows of its trial do not bear out."""
    mine = slice(*np.searchsorted(rows.trial_id, [outcome["trial_id"], outcome["trial_id"] + 1]).tolist())
    steps, diverged = rows.step[mine], outcome.get("diverged_step")
    met = steps[study.goal.is_met(rows.metrics[study.goal.metric][mine])]
    if outcome.get("goal_step") != (int(met[0]) if len(met) else None):
        yield f"trial {outcome['trial_id']} met the goal at another step than it tells"
    last, told = int(steps[-1]), outcome["last_step"]
    ends_early = study.workload.is_own_loop or study.max_examples is not None
    latest = study.max_steps if ends_early else last if diverged is None else diverged
    if not last <= told <= latest:
        yield f"trial {outcome['trial_id']} ends at step {last}, and it tells of {told}"


def _checkpoint_problems(path: Path, arrays: Mapping[str, np.ndarray], study: Study) -> Iterator[str]:
    columns = {name.removeprefix("rows."): array for name, array in arrays.items() if name.startswith("rows.")}
    ids, step, examples = (columns.pop(name, None) for name in ("trial_id", "step", "examples"))
    if ids is None or step is None or not all(_is_whole(column) for column in (ids, step)):
        yield "it names no trials"
        return
    all_columns = (ids, *columns.values(), *([] if examples is None else [examples]))
    if any(column.shape != step.shape or column.dtype.kind not in "fiu" for column in all_columns):
        yield "its columns do not fit each other"
        return
    if not _is_one_amount(arrays.get("seconds")):
        yield "it does not tell how long it took"
    if not _is_one_amount(arrays.get("counted", np.array(0))):  # missing where an older batchlab has written it
        yield "it does not tell how many of its updates were counted before"
    if examples is not None and not _is_whole(examples):
        yield "its examples are no whole numbers"
    yield from _row_problems(path, Measurements(ids, step, columns, examples), set(ids.tolist()), study)


def _is_one_amount(array: np.ndarray | None) -> bool:
    return array is not None and array.shape == () and array.dtype.kind in "fiu" and _is_amount(array.item())


def _is_whole(column: np.ndarray) -> bool:
    return column.ndim == 1 and column.dtype.kind in "iu" and len(column) > 0


def _row_problems(path: Path, rows: Measurements, trial_ids: set[int], study: Study) -> Iterator[str]:
    """Yield what of a pack's rows cannot be, in a pack of these trials and of this name."""
    if set(np.unique(rows.trial_id).tolist()) != trial_ids:
        yield "it has rows of other trials than it tells of"
        return
    if not names_pack(path.stem, trial_ids):
        yield "it is of other trials than its name says"
    if not all(_is_of_study(trial_id, study, _is_confirming(path)) for trial_id in trial_ids):
        yield "it is of trials that the study has not"
    if study.goal.metric not in rows.metrics:
        yield f"it has no {study.goal.metric}"
        return
    yield from _step_problems(rows, study)


def _is_confirming(path: Path) -> bool:
    return path.parent.parent.name == "confirming"


def _is_of_study(trial_id: int, study: Study, is_confirming: bool) -> bool:
    replicate, trial_id = divmod(trial_id, REPLICATE_STRIDE)
    return trial_id < study.num_points and (replicate > 0) == is_confirming


def _step_problems(rows: Measurements, study: Study) -> Iterator[str]:
    """Yield whether a trial has rows where none is evaluated, or not all rows up to its last."""
    step, is_same = rows.step, np.diff(rows.trial_id) == 0
    if step.min() < 0 or step.max() > study.max_steps:
        yield f"it has steps that are not from 0 to {study.max_steps}"
        return
    if np.any(np.diff(rows.trial_id) < 0) or np.any(np.diff(step)[is_same] <= 0):
        yield "its rows are not in order, or a row is there twice"
        return
    if problem := examples_problem(rows, study):
        yield problem
    if study.workload.is_own_loop:  # which reports when it likes
        return
    grid = np.fromiter(study.evaluation.steps(int(step.max()) + 1), dtype=np.int64)[:-1]
    place = np.searchsorted(grid, step)
    is_last, is_first = np.append(~is_same, True), np.insert(~is_same, 0, True)
    # At the end of a budget, which may have grown since, the last row may lie between two steps of the grid.
    is_on_grid = np.where(place < len(grid), grid[np.minimum(place, len(grid) - 1)] == step, False)
    follows = np.diff(place)[is_same] == 1
    if not (np.all(is_on_grid | is_last) and np.all(step[is_first] == 0) and np.all(follows)):
        yield "its steps are not those at which the study is evaluated"
