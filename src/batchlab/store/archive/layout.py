"""The published layout: what a path means, and what the two kinds of JSON say."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from batchlab.core.space import Range, SearchSpace, Values
from batchlab.core.trial import Status, Trial
from batchlab.errors import InputError, SpecError, shown
from batchlab.store.study_record import ImportedStudy

TOP = "batch_science"
"""The folder that the published archive unpacks to; it is no part of a workload's name."""

SCALES = {"LINEAR_SCALE": "linear", "LOG_SCALE": "log", "REVERSE_LOG_SCALE": "reverse_log", "": "linear"}
EXTRA = "_batchlab"
"""The key under which our own exports carry what the published layout has no field for."""

MOST = 2**63 - 1
"""The largest whole number that a table holds."""

MOST_WORKLOAD = 200
"""Characters of a workload's name."""

MOST_PARAMETERS = 1_000
"""Metaparameters of a study or a trial; the published ones have up to 7."""

MOST_REASON = 300
"""Characters of a reason: what it quotes comes from the archive."""


class RejectedError(InputError):
    """One study or trial of an archive cannot be imported; the message says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(shown(reason, MOST_REASON))


class StudyPath(NamedTuple):
    """Which study a file belongs to."""

    workload: str
    batch_size: int

    def __str__(self) -> str:
        return f"{self.workload}/{self.batch_size}"


class Member(NamedTuple):
    """One file of an archive, by its path."""

    study: StudyPath
    kind: Literal["study", "metadata", "measurements"]
    trial_id: int | None = None

    @property
    def name(self) -> str:
        """Its path within the folder of its study, as we write it."""
        return "study.json" if self.trial_id is None else f"{self.trial_id}/{_FILES[self.kind]}"


_FILES = {"study": "study.json", "metadata": "metadata.json", "measurements": "measurements.csv"}
_KINDS: dict[str, Literal["metadata", "measurements"]] = {
    "metadata.json": "metadata",
    "measurements.csv": "measurements",
}


def parse_path(parts: Sequence[str]) -> Member | None:
    """Return what the file at a path below the archive's root is; None for files that have no part in it.

    >>> parse_path(["batch_science", "mnist", "fc_1024", "sgd", "64", "7", "metadata.json"])
    Member(study=StudyPath(workload='mnist/fc_1024/sgd', batch_size=64), kind='metadata', trial_id=7)
    """
    parts = parts[1:] if parts and parts[0] == TOP else parts
    if len(parts) >= 6 and (kind := _KINDS.get(parts[-1])):
        return Member(_study_path("/".join(parts[:-2])), kind, parse_trial(parts[-2]))
    if len(parts) >= 5 and parts[-1] == "study.json":
        return Member(_study_path("/".join(parts[:-1])), "study")
    return None


def parse_trial(name: str) -> int:
    """Return the id of the trial in a folder of that name."""
    return _integer(name, "trial")


@lru_cache(maxsize=64)  # the files of a study follow each other
def _study_path(folder: str) -> StudyPath:
    workload, _, batch_size = folder.rpartition("/")
    if not is_workload(workload):
        raise RejectedError(f'"{shown(workload)}" cannot be the name of a workload')
    return StudyPath(workload, _integer(batch_size, "batch size"))


def is_workload(name: str) -> bool:
    """Return whether a name can be that of a workload, and the path of a folder: it stays below where it is put.

    >>> is_workload("mnist/fc_1024/sgd"), is_workload("../fc_1024/sgd"), is_workload("mnist/sgd")
    (True, False, False)
    """
    parts = name.split("/")
    return (
        len(parts) >= 3
        and len(name) <= MOST_WORKLOAD
        and all(part and part[0] not in ".-" and part.isprintable() and "\\" not in part for part in parts)
    )


def _integer(name: str, what: str) -> int:
    if not (name.isascii() and name.isdigit()):
        raise RejectedError(f'the folder name "{shown(name)}" is no {what}: it must be a whole number')
    if len(name) > 19 or int(name) > MOST:
        raise RejectedError(f'the folder name "{shown(name)}" is no {what}: it is too large')
    return int(name)


def read_study(content: bytes, path: StudyPath) -> tuple[ImportedStudy, Any]:
    """Return the contents of study.json, and what one of our own exports adds to it, None where nothing is added."""
    data = _object(content)
    try:
        if path.batch_size < 1:
            raise RejectedError("a batch size of 0 is none")
        if _whole(data, "batch_size") != path.batch_size:
            raise RejectedError(f"study.json says batch size {data['batch_size']}, its folder {path.batch_size}")
        study = {
            "workload": path.workload,
            "batch_size": path.batch_size,
            "search_space": {name: _dimension(config) for name, config in _few(data["parameter_configs"]).items()},
            "train_steps": _whole(data, "train_steps"),
            "early_stopping": _flag(data, "early_stopping"),
        }
        extra = data.get(EXTRA)
        if EXTRA in data and not isinstance(extra, dict):
            raise RejectedError(f"`{EXTRA}` of study.json is no table")
        return ImportedStudy.parse(study, "study.json"), extra
    except KeyError as error:
        raise RejectedError(f"study.json lacks the field {error}") from None
    except (AttributeError, TypeError, RecursionError) as error:
        raise RejectedError(f"study.json has a field of the wrong kind: {error}") from None
    except SpecError as error:
        raise RejectedError(str(error)) from None


def read_metadata(content: bytes, trial_id: int) -> Trial:
    """Return the trial of a metadata.json."""
    data = _object(content)
    try:
        if _whole(data, "trial_id") != trial_id:
            raise RejectedError(f"metadata.json says trial {data['trial_id']}, its folder {trial_id}")
        parameters = _few(data["parameters"])
        trial = {
            **data.get(EXTRA, {}),
            "trial_id": trial_id,
            "status": data["status"],
            "metaparameters": {name: _number(value, name) for name, value in sorted(parameters.items())},
            "last_step": _whole(data, "steps"),
        }
        return Trial.parse(trial, "metadata.json")
    except KeyError as error:
        raise RejectedError(f"metadata.json lacks the field {error}") from None
    except (AttributeError, TypeError, RecursionError) as error:
        raise RejectedError(f"metadata.json has a field of the wrong kind: {error}") from None
    except SpecError as error:
        raise RejectedError(str(error)) from None


def _object(content: bytes) -> dict[str, Any]:
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode()
        data = json.loads(text)
        if "\\u" in text:  # half of a pair of characters can be written so, and no file holds it
            json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise RejectedError(f"not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise RejectedError("the JSON is no object")
    return data


def _whole(data: Mapping[str, Any], name: str) -> int:
    """Return a field that counts something; RejectedError where it is no whole number that a table holds."""
    value = data[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RejectedError(f"`{name}` = {shown(value)} is no whole number")
    if not (0 <= value <= MOST and value == int(value)):
        raise RejectedError(f"`{name}` = {shown(value)} is no whole number from 0 to {MOST}")
    return int(value)


def _number(value: Any, name: str) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise RejectedError(f"`{shown(name)}` = {shown(value)} is no finite number")
    except OverflowError:
        raise RejectedError(f"`{shown(name)}` is too large a number") from None
    return float(value)


def _flag(data: Mapping[str, Any], name: str) -> bool:
    if not isinstance(data[name], bool):
        raise RejectedError(f"`{name}` = {shown(data[name])} is neither true nor false")
    return bool(data[name])


def _few(table: Any) -> dict[str, Any]:
    """Return a table of metaparameters; RejectedError where it is none, or larger than any."""
    if not isinstance(table, dict):
        raise TypeError(f"{shown(table)} is no table")
    if len(table) > MOST_PARAMETERS:
        raise RejectedError(f"{len(table):,} metaparameters, more than {MOST_PARAMETERS:,}")
    return table


def _dimension(config: Mapping[str, Any]) -> dict[str, Any]:
    if config["type"] == "DISCRETE":
        return {"values": [_number(value, "feasible_points") for value in config["feasible_points"]]}
    if config["type"] not in ("DOUBLE", "INTEGER") or config.get("scale", "") not in SCALES:
        raise RejectedError(f"study.json has a parameter of an unknown type or scale: {shown(config)}")
    kind = "integer" if config["type"] == "INTEGER" else "double"
    return {
        "min": _number(config["min_value"], "min_value"),
        "max": _number(config["max_value"], "max_value"),
        "scale": SCALES[config.get("scale", "")],
        "type": kind,
    }


def parameter_configs(space: SearchSpace) -> dict[str, Any]:
    """Return a search space as study.json spells it."""
    return {name: _config(space[name]) for name in sorted(space.names)}


def _config(dimension: Range | Values) -> dict[str, Any]:
    if isinstance(dimension, Values):
        return {"feasible_points": list(dimension.values), "type": "DISCRETE"}
    if dimension.type == "integer":
        scale = "LOG_SCALE" if dimension.scale == "log" else ""
        return {"max_value": int(dimension.max), "min_value": int(dimension.min), "scale": scale, "type": "INTEGER"}
    low, high = sorted(dimension.ends)  # of the metaparameter itself, whatever unit its range is written in
    spelled = {ours: theirs for theirs, ours in SCALES.items() if theirs}
    is_share = dimension.unit == "half_life_examples" and high < 1
    scale = spelled["reverse_log" if is_share else dimension.scale]
    return {"max_value": high, "min_value": low, "scale": scale, "type": "DOUBLE"}


def end_step(study: ImportedStudy, trials: Sequence[Trial]) -> int:
    """Return the step to which the complete trials of a study trained, at the least."""
    complete = [trial.last_step for trial in trials if trial.status is Status.COMPLETE]
    return study.train_steps or min(complete, default=0)
