"""The published layout: what a path means, and what the two kinds of JSON say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from batchlab.core.space import Range, SearchSpace, Values
from batchlab.core.trial import Status, Trial
from batchlab.errors import InputError, SpecError
from batchlab.store.study_record import ImportedStudy

TOP = "batch_science"
"""The folder that the published archive unpacks to; it is no part of a workload's name."""

SCALES = {"LINEAR_SCALE": "linear", "LOG_SCALE": "log", "REVERSE_LOG_SCALE": "reverse_log", "": "linear"}
EXTRA = "_batchlab"
"""The key under which our own exports carry what the published layout has no field for."""


class RejectedError(InputError):
    """One study or trial of an archive cannot be imported; the message says why."""


@dataclass(frozen=True, order=True)
class StudyPath:
    """Which study a file belongs to."""

    workload: str
    batch_size: int


@dataclass(frozen=True)
class Member:
    """One file of an archive, by its path."""

    study: StudyPath
    kind: Literal["study", "metadata", "measurements"]
    trial_id: int | None = None


def parse_path(parts: Sequence[str]) -> Member | None:
    """Return what the file at a path below the archive's root is; None for files that have no part in it.

    >>> parse_path(["batch_science", "mnist", "fc_1024", "sgd", "64", "7", "metadata.json"])
    Member(study=StudyPath(workload='mnist/fc_1024/sgd', batch_size=64), kind='metadata', trial_id=7)
    """
    parts = [part for part in parts if part != "."]
    parts = parts[1:] if parts[:1] == [TOP] else parts
    if parts and parts[-1] == "study.json" and len(parts) >= 5:
        return Member(_study_path(parts[:-1]), "study")
    if parts and parts[-1] in ("metadata.json", "measurements.csv") and len(parts) >= 6:
        kind: Literal["metadata", "measurements"] = "metadata" if parts[-1] == "metadata.json" else "measurements"
        return Member(_study_path(parts[:-2]), kind, parse_trial(parts[-2]))
    return None


def parse_trial(name: str) -> int:
    """Return the id of the trial in a folder of that name."""
    return _integer(name, "trial")


def _study_path(parts: Sequence[str]) -> StudyPath:
    return StudyPath("/".join(parts[:-1]), _integer(parts[-1], "batch size"))


def _integer(name: str, what: str) -> int:
    if not (name.isascii() and name.isdigit()):
        raise RejectedError(f'the folder name "{name}" is no {what}: it must be a whole number')
    return int(name)


def read_study(content: bytes, path: StudyPath) -> tuple[ImportedStudy, dict[str, Any]]:
    """Return what study.json tells, and what one of our own exports adds to it."""
    data = _object(content)
    try:
        if data["batch_size"] != path.batch_size:
            raise RejectedError(f"study.json says batch size {data['batch_size']}, its folder {path.batch_size}")
        study = {
            "workload": path.workload,
            "batch_size": path.batch_size,
            "search_space": {name: _dimension(config) for name, config in data["parameter_configs"].items()},
            "train_steps": data["train_steps"],
            "early_stopping": data["early_stopping"],
        }
        return ImportedStudy.parse(study, "study.json"), data.get(EXTRA, {})
    except KeyError as error:
        raise RejectedError(f"study.json lacks the field {error}") from None
    except (AttributeError, TypeError) as error:
        raise RejectedError(f"study.json has a field of the wrong kind: {error}") from None
    except SpecError as error:
        raise RejectedError(str(error)) from None


def read_metadata(content: bytes, trial_id: int) -> Trial:
    """Return the trial that metadata.json tells of."""
    data = _object(content)
    try:
        if data["trial_id"] != trial_id:
            raise RejectedError(f"metadata.json says trial {data['trial_id']}, its folder {trial_id}")
        trial = {
            **data.get(EXTRA, {}),
            "trial_id": trial_id,
            "status": data["status"],
            "metaparameters": dict(sorted(data["parameters"].items())),
            "last_step": data["steps"],
        }
        return Trial.parse(trial, "metadata.json")
    except KeyError as error:
        raise RejectedError(f"metadata.json lacks the field {error}") from None
    except (AttributeError, TypeError) as error:
        raise RejectedError(f"metadata.json has a field of the wrong kind: {error}") from None
    except SpecError as error:
        raise RejectedError(str(error)) from None


def _object(content: bytes) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except ValueError as error:
        raise RejectedError(f"not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise RejectedError("the JSON is no object")
    return data


def _dimension(config: Mapping[str, Any]) -> dict[str, Any]:
    if config["type"] == "DISCRETE":
        return {"values": config["feasible_points"]}
    if config["type"] not in ("DOUBLE", "INTEGER") or config.get("scale", "") not in SCALES:
        raise RejectedError(f"study.json has a parameter of an unknown type or scale: {config}")
    kind = "integer" if config["type"] == "INTEGER" else "double"
    return {
        "min": config["min_value"],
        "max": config["max_value"],
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
    scale = {ours: theirs for theirs, ours in SCALES.items() if theirs}[dimension.scale]
    return {"max_value": dimension.max, "min_value": dimension.min, "scale": scale, "type": "DOUBLE"}


def end_step(study: ImportedStudy, trials: Sequence[Trial]) -> int:
    """Return the step to which the complete trials of a study trained, at the least."""
    complete = [trial.last_step for trial in trials if trial.status is Status.COMPLETE]
    return study.train_steps or min(complete, default=0)
