"""The files of one study, as bytes, to trials and a table of measurements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from batchlab.core.measurement import Measurements
from batchlab.core.trial import Trial
from batchlab.store.archive.layout import RejectedError, StudyPath, read_metadata, read_study
from batchlab.store.columns import to_numpy
from batchlab.store.seal import digest
from batchlab.store.study_record import ImportedStudy

_MISSING = ["", "null", "NULL", "N/A", "NA", "#N/A"]
"""What pandas, too, reads as no number; "nan" is a number here."""

_METRIC = re.compile(r"(train|val|test)/[a-z0-9_]{1,100}")
MOST_METRICS = 64
"""Columns of one study; the published ones have up to 6."""

MOST_HEADER = 1 << 14
"""Bytes of the first line of measurements.csv."""

OVERHEAD = 512
"""Bytes that a file in memory takes beside its content."""


@dataclass
class StudyFiles:
    """The raw files of one study, or of a part of its trials."""

    path: StudyPath
    study: bytes | None = None
    metadata: dict[int, bytes] = field(default_factory=dict)
    measurements: dict[int, bytes] = field(default_factory=dict)
    rejected: list[tuple[str, str]] = field(default_factory=list)
    """The folder of a trial and the reason, for what was refused before it got here."""

    def digests(self) -> dict[str, str]:
        """Return the digest of every file, by its path within the study's folder."""
        found = {} if self.study is None else {"study.json": digest(self.study)}
        found |= {f"{trial_id}/metadata.json": digest(content) for trial_id, content in self.metadata.items()}
        found |= {f"{trial_id}/measurements.csv": digest(content) for trial_id, content in self.measurements.items()}
        return found


@dataclass(frozen=True)
class Piece:
    """The files of a study, or of a part of it, with the measurements parsed."""

    study: bytes | None
    metadata: dict[int, bytes]
    measurements: Measurements
    measured: set[int]
    """The trials whose measurements.csv was there, broken or not."""

    rejected: list[tuple[str, str]]
    """The folder of a trial and the reason."""


@dataclass(frozen=True)
class ConvertedStudy:
    """A study as a lab holds it."""

    study: ImportedStudy
    extra: Any
    """What one of our own exports adds; None in other archives."""

    trials: list[Trial]
    measurements: Measurements
    rejected: list[tuple[str, str]]
    """Path within the archive and reason, one for each trial that was left out."""


def parse_files(files: StudyFiles) -> Piece:
    """Parse the measurements of some files; a table that is broken is left out and reported."""
    tables, broken = read_tables(files.measurements)
    try:
        rows = join(tables)
    except RejectedError as error:
        rows, broken = join([]), dict.fromkeys(files.measurements, str(error))
    rejected = [*files.rejected, *((str(trial_id), reason) for trial_id, reason in broken.items())]
    return Piece(files.study, files.metadata, rows, set(files.measurements), rejected)


def assemble(path: StudyPath, pieces: Sequence[Piece]) -> ConvertedStudy:
    """Join the pieces of one study; trials that are broken are left out and reported.

    RejectedError if study.json is missing or broken, or no trial can be used: then there is no study.
    """
    contents = [piece.study for piece in pieces if piece.study is not None]
    if not contents:
        raise RejectedError("study.json is missing")
    study, extra = read_study(contents[0], path)
    trials, refused = _read_trials(pieces)
    reasons: dict[str, str] = {}  # one for each trial, however much of it is broken
    for trial, reason in (each for piece in pieces for each in piece.rejected):
        reasons.setdefault(trial, reason)
    for trial_id, reason in refused.items():
        reasons.setdefault(str(trial_id), reason)
    kept = [each for each in trials if str(each.trial_id) not in reasons]
    if not kept:
        first = next((f"; {name}: {reason}" for name, reason in reasons.items()), "")
        raise RejectedError(f"none of its {len(reasons)} trials can be used{first}")
    rows = join([piece.measurements for piece in pieces])
    if reasons:
        rows = rows.where(np.isin(rows.trial_id, [each.trial_id for each in kept]))
    return ConvertedStudy(study, extra, kept, rows, [(f"{path}/{name}", reason) for name, reason in reasons.items()])


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


def read_tables(contents: Mapping[int, bytes]) -> tuple[list[Measurements], dict[int, str]]:
    """Return the measurements of the trials, in few tables, and the reason for each trial that has none.

    All files of a study with the same header are parsed as one: a file each would cost a hundred times as much.
    """
    by_header: dict[bytes, dict[int, bytes]] = {}
    broken: dict[int, str] = {}
    tables: list[Measurements] = []
    for trial_id, content in sorted(contents.items()):
        header = bytes(content[:MOST_HEADER]).partition(b"\n")[0]
        by_header.setdefault(header.rstrip(b"\r"), {})[trial_id] = content
    for header, files in by_header.items():
        try:
            names = _column_names(header)
        except RejectedError as error:
            broken |= dict.fromkeys(files, str(error))
            continue
        good, bad = _parse_all(names, files)
        tables += good
        broken |= bad
    return tables, broken


def _parse_all(names: list[str], files: Mapping[int, bytes]) -> tuple[list[Measurements], dict[int, str]]:
    """Parse files with the same header: those whose lines are rows at once, the others, and where one is broken all,
    one by one."""
    bodies = {trial_id: _body(content) for trial_id, content in files.items()}
    plain = {trial_id: body for trial_id, body in bodies.items() if _is_plain(body)}
    rest = {trial_id: body for trial_id, body in bodies.items() if trial_id not in plain}
    try:
        tables, broken = [_parse(names, plain)] if plain else [], dict[int, str]()
    except RejectedError:
        tables, broken = _parse_one_by_one(names, plain)
    more, bad = _parse_one_by_one(names, rest)
    return [*tables, *more], broken | bad


def _body(content: bytes) -> bytes:
    """Return what follows the first line, each line ended."""
    body = content[content.find(b"\n") + 1 :] if b"\n" in content[:MOST_HEADER] else b""
    return body if body.endswith(b"\n") or not body else body + b"\n"


def _is_plain(body: bytes) -> bool:
    """Return whether no line is more than a row: then the rows of many files can be told apart by counting their lines.

    A line may still be less than a row, an empty one: `_parse` finds fewer rows than lines.
    """
    if b'"' in body:
        return False
    return b"\r" not in body or (
        body.count(b"\r") == body.count(b"\r\n") and b"\n\r" not in body and not body.startswith(b"\r")
    )


def join(tables: Sequence[Measurements]) -> Measurements:
    """Return sorted tables as one, sorted by trial and step; a metric that some trials lack is NaN there."""
    if len(tables) == 1:
        return tables[0]
    tables = [table for table in tables if len(table)] or list(tables[:1])  # no rows tell nothing of the others
    names = list(dict.fromkeys(name for table in tables for name in table.metrics))
    if len(names) > MOST_METRICS:
        raise RejectedError(f"its trials have {len(names):,} metrics, more than {MOST_METRICS}")
    empty = np.empty(0)
    trial_id = np.concatenate([np.empty(0, np.int64), *(table.trial_id for table in tables)])
    step = np.concatenate([np.empty(0, np.int64), *(table.step for table in tables)])
    metrics = {
        name: np.concatenate([empty, *(table.metrics.get(name, np.full(len(table), np.nan)) for table in tables)])
        for name in names
    }
    counts = [table.examples for table in tables if table.examples is not None]
    examples = np.concatenate(counts) if counts and len(counts) == len(tables) else None
    whole = Measurements(trial_id, step, metrics, examples)
    return whole if _is_sorted(trial_id, step) else whole.where(np.lexsort((step, trial_id)))


def _is_sorted(trial_id: np.ndarray, step: np.ndarray) -> bool:
    same, ascends = trial_id[1:] == trial_id[:-1], step[1:] > step[:-1]
    return bool(np.all(np.where(same, ascends, trial_id[1:] > trial_id[:-1])))


def _parse_one_by_one(names: list[str], bodies: Mapping[int, bytes]) -> tuple[list[Measurements], dict[int, str]]:
    tables, broken = [], {}
    for trial_id, body in bodies.items():
        try:
            tables.append(_parse(names, {trial_id: body}))
        except RejectedError as error:
            broken[trial_id] = str(error)
    return tables, broken


def _column_names(header: bytes) -> list[str]:
    names = header.decode("utf-8", "replace").replace('"', "").split(",")
    metrics = names[2:] if names[1:2] == ["examples"] else names[1:]  # of an own export, where they are no multiple
    if names[0] != "step" or not all(map(_METRIC.fullmatch, metrics)) or len(set(names)) < len(names):
        raise RejectedError(f"measurements.csv has an unknown header: {','.join(names)[:200]}")
    if len(names) > MOST_METRICS + 1:
        raise RejectedError(f"measurements.csv has {len(names):,} columns, more than {MOST_METRICS + 1}")
    return names


def _parse(names: list[str], bodies: Mapping[int, bytes]) -> Measurements:
    """Return the rows of several files with the same header as one table; RejectedError if any is broken."""
    pieces = list(bodies.values())
    counts = [piece.count(b"\n") for piece in pieces]
    table = _read_csv(names, pieces[0] if len(pieces) == 1 else b"".join(pieces))
    if table.num_rows != sum(counts):
        raise RejectedError("measurements.csv has empty or doubled line ends")
    trial_id = np.repeat(np.fromiter(bodies, np.int64, len(bodies)), counts)
    columns = {name: to_numpy(table[name]) for name in names[1:]}
    rows = Measurements(trial_id, to_numpy(table["step"]), examples=columns.pop("examples", None), metrics=columns)
    if len(rows) and rows.step.min() < 0:
        raise RejectedError("measurements.csv has a negative step")
    if not _is_sorted(trial_id, rows.step):
        raise RejectedError("the steps of measurements.csv do not ascend")
    return rows


def _read_csv(names: list[str], content: bytes) -> pa.Table:
    types = {name: pa.int64() if name in ("step", "examples") else pa.float64() for name in names}
    if not content:
        return pa.table({name: pa.array([], kind) for name, kind in types.items()})
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(content),
            read_options=pa.csv.ReadOptions(column_names=names, use_threads=False, block_size=1 << 26),
            convert_options=pa.csv.ConvertOptions(column_types=types, null_values=_MISSING),
        )
    except pa.ArrowException as error:
        raise RejectedError(f"measurements.csv cannot be read: {str(error).splitlines()[0][:200]}") from None
    for name, words in (("step", "a step"), ("examples", "examples")):
        if name in names and table[name].null_count:
            raise RejectedError(f"measurements.csv has a row without {words}")
    return table
