"""Pieces of studies that wait on the disk, parsed and compressed, until the whole archive has been read."""

from __future__ import annotations

from pathlib import Path

from batchlab.store import parquet
from batchlab.store.archive.convert import Piece, StudyFiles, digest
from batchlab.store.archive.layout import StudyPath


def stage(files: StudyFiles, path: Path) -> None:
    """Parse the files and keep them at `path`."""
    piece = digest(files)
    record = {
        "workload": piece.path.workload,
        "batch_size": piece.path.batch_size,
        "study": None if piece.study is None else piece.study.decode("utf-8", "replace"),
        "metadata": {str(i): content.decode("utf-8", "replace") for i, content in piece.metadata.items()},
        "measured": sorted(piece.measured),
        "rejected": piece.rejected,
    }
    parquet.write_measurements(path, piece.measurements, record)


def load(path: Path) -> Piece:
    """Return a piece that `stage` kept."""
    measurements, record = parquet.read_whole(path)
    return Piece(
        path=StudyPath(record["workload"], record["batch_size"]),
        study=None if record["study"] is None else record["study"].encode(),
        metadata={int(i): content.encode() for i, content in record["metadata"].items()},
        measurements=measurements,
        measured=set(record["measured"]),
        rejected=[(place, reason) for place, reason in record["rejected"]],
    )
