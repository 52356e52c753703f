"""The files of one study, as bytes, to trials and a table of measurements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from batchlab.core.measurement import Measurements
from batchlab.core.trial import Trial
from batchlab.store.archive.layout import RejectedError, StudyPath, read_metadata, read_study
from batchlab.store.columns import to_numpy
from batchlab.store.study_record import ImportedStudy

_MISSING = ["", "null", "NULL", "N/A", "NA", "#N/A"]
"""What pandas, too, reads as no number; "nan" is a number here."""

_METRIC = re.compile(r"(train|val|test)/[a-z0-9_]+")


@dataclass
class StudyFiles:
    """The raw files of one study, or of a part of its trials."""

    path: StudyPath
    study: bytes | None = None
    metadata: dict[int, bytes] = field(default_factory=dict)
    measurements: dict[int, bytes] = field(default_factory=dict)
    rejected: list[tuple[str, str]] = field(default_factory=list)
    """Path within the archive and reason, for what was refused before it got here."""

    @property
    def size(self) -> int:
        """Bytes held."""
        return sum(map(len, self.metadata.values())) + sum(map(len, self.measurements.values()))


@dataclass(frozen=True)
class Piece:
    """The files of a study, or of a part of it, with the measurements parsed."""

    path: StudyPath
    study: bytes | None
    metadata: dict[int, bytes]
    measurements: Measurements
    measured: set[int]
    """The trials whose measurements.csv was there, broken or not."""

    rejected: list[tuple[str, str]]


@dataclass(frozen=True)
class ConvertedStudy:
    """A study as a lab holds it."""

    study: ImportedStudy
    extra: dict[str, Any]
    trials: list[Trial]
    measurements: Measurements
    rejected: list[tuple[str, str]]


def digest(files: StudyFiles) -> Piece:
    """Parse the measurements of some files; a table that is broken is left out and told."""
    tables, broken = read_tables(files.measurements)
    rejected = [*files.rejected, *((_place(files.path, trial_id), reason) for trial_id, reason in broken.items())]
    return Piece(files.path, files.study, files.metadata, join(tables), set(files.measurements), rejected)


def assemble(pieces: Sequence[Piece]) -> ConvertedStudy:
    """Join the pieces of one study; trials that are broken are left out and told.

    RejectedError if study.json is missing or broken: then there is no study.
    """
    contents = [piece.study for piece in pieces if piece.study is not None]
    if not contents:
        raise RejectedError("study.json is missing")
    path = pieces[0].path
    study, extra = read_study(contents[0], path)
    rejected = [reason for piece in pieces for reason in piece.rejected]
    trials, refused = _read_trials(pieces)
    rejected += [(_place(path, trial_id), reason) for trial_id, reason in refused.items()]
    known = {place for place, _ in rejected}
    kept = [trial for trial in trials if _place(path, trial.trial_id) not in known]
    rows = join([piece.measurements for piece in pieces])
    if rejected:
        rows = rows.where(np.isin(rows.trial_id, [trial.trial_id for trial in kept]))
    return ConvertedStudy(study, extra, kept, rows, rejected)


def _read_trials(pieces: Sequence[Piece]) -> tuple[list[Trial], dict[int, str]]:
    """Return the trials in ascending id, and the reason for each that cannot be used."""
    trials: dict[int, Trial] = {}
    refused: dict[int, str] = {}
    measured = Counter(trial_id for piece in pieces for trial_id in piece.measured)
    for trial_id, content in ((i, content) for piece in pieces for i, content in piece.metadata.items()):
        try:
            if trial_id in trials or measured[trial_id] > 1:
                raise RejectedError("the trial is there twice")
            trials[trial_id] = read_metadata(content, trial_id)
        except RejectedError as error:
            refused[trial_id] = str(error)
    refused |= dict.fromkeys(trials.keys() - set(measured), "measurements.csv is missing")
    refused |= dict.fromkeys(set(measured) - trials.keys() - refused.keys(), "metadata.json is missing")
    return [trials[trial_id] for trial_id in sorted(trials)], refused


def read_tables(contents: dict[int, bytes]) -> tuple[list[Measurements], dict[int, str]]:
    """Return the measurements of the trials, in few tables, and the reason for each trial that has none.

    All files of a study with the same header are parsed as one: a file each would cost a hundred times as much.
    """
    by_header: dict[bytes, dict[int, bytes]] = {}
    for trial_id, content in sorted(contents.items()):
        header, _, body = content.partition(b"\n")
        by_header.setdefault(header.rstrip(b"\r"), {})[trial_id] = body
    tables: list[Measurements] = []
    broken: dict[int, str] = {}
    for header, bodies in by_header.items():
        try:
            names = _column_names(header)
        except RejectedError as error:
            broken |= dict.fromkeys(bodies, str(error))
            continue
        try:
            tables.append(_parse(names, bodies))
        except RejectedError:
            good, bad = _parse_one_by_one(names, bodies)
            tables += good
            broken |= bad
    return tables, broken


def join(tables: Sequence[Measurements]) -> Measurements:
    """Return sorted tables as one, sorted by trial and step; a metric that some trials lack is NaN there."""
    if len(tables) == 1:
        return tables[0]
    names = list(dict.fromkeys(name for table in tables for name in table.metrics))
    empty = np.empty(0)
    trial_id = np.concatenate([np.empty(0, np.int64), *(table.trial_id for table in tables)])
    step = np.concatenate([np.empty(0, np.int64), *(table.step for table in tables)])
    metrics = {
        name: np.concatenate([empty, *(table.metrics.get(name, np.full(len(table), np.nan)) for table in tables)])
        for name in names
    }
    whole = Measurements(trial_id, step, metrics)
    return whole if _is_sorted(trial_id, step) else whole.where(np.lexsort((step, trial_id)))


def _is_sorted(trial_id: np.ndarray, step: np.ndarray) -> bool:
    same, ascends = trial_id[1:] == trial_id[:-1], step[1:] > step[:-1]
    return bool(np.all(np.where(same, ascends, trial_id[1:] > trial_id[:-1])))


def _parse_one_by_one(names: list[str], bodies: dict[int, bytes]) -> tuple[list[Measurements], dict[int, str]]:
    tables, broken = [], {}
    for trial_id, body in bodies.items():
        try:
            tables.append(_parse(names, {trial_id: body}))
        except RejectedError as error:
            broken[trial_id] = str(error)
    return tables, broken


def _column_names(header: bytes) -> list[str]:
    names = header.decode("utf-8", "replace").replace('"', "").split(",")
    if names[0] != "step" or not all(_METRIC.fullmatch(name) for name in names[1:]) or len(set(names)) < len(names):
        raise RejectedError(f"measurements.csv has an unknown header: {','.join(names)[:200]}")
    return names


def _parse(names: list[str], bodies: dict[int, bytes]) -> Measurements:
    """Return the rows of several files with the same header as one table; RejectedError if any is broken."""
    pieces = [body if body.endswith(b"\n") or not body else body + b"\n" for body in bodies.values()]
    counts = [piece.count(b"\n") for piece in pieces]
    table = _read_csv(names, b"".join(pieces))
    if table.num_rows != sum(counts):
        raise RejectedError("measurements.csv has empty lines")
    trial_id = np.repeat(np.fromiter(bodies, np.int64, len(bodies)), counts)
    rows = Measurements(trial_id, to_numpy(table["step"]), {name: to_numpy(table[name]) for name in names[1:]})
    if not _is_sorted(trial_id, rows.step):
        raise RejectedError("the steps of measurements.csv do not ascend")
    return rows


def _read_csv(names: list[str], content: bytes) -> pa.Table:
    types = {name: pa.int64() if name == "step" else pa.float64() for name in names}
    if not content:
        return pa.table({name: pa.array([], kind) for name, kind in types.items()})
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(content),
            read_options=pa.csv.ReadOptions(column_names=names, use_threads=False, block_size=1 << 26),
            convert_options=pa.csv.ConvertOptions(column_types=types, null_values=_MISSING),
        )
    except pa.ArrowInvalid as error:
        raise RejectedError(f"measurements.csv cannot be read: {str(error).splitlines()[0][:200]}") from None
    if table["step"].null_count:
        raise RejectedError("measurements.csv has a row without a step")
    return table


def _place(path: StudyPath, trial_id: int) -> str:
    return f"{path.workload}/{path.batch_size}/{trial_id}"
