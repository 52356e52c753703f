"""Pieces of studies that wait on the disk, parsed and compressed, until the whole archive has been read."""

from __future__ import annotations

from pathlib import Path

from batchlab.store import parquet
from batchlab.store.archive.convert import Piece, StudyFiles, parse_files


def stage(files: StudyFiles, path: Path) -> None:
    """Parse the files and keep them at `path`, with their digests."""
    piece = parse_files(files)
    record = {
        "study": None if piece.study is None else _text(piece.study),
        "metadata": {str(i): _text(content) for i, content in piece.metadata.items()},
        "measured": sorted(piece.measured),
        "rejected": piece.rejected,
        "digests": files.digests(),
    }
    parquet.write_measurements(path, piece.measurements, record, sync=False)


def load(path: Path) -> tuple[Piece, dict[str, str]]:
    """Return a piece that `stage` kept, and the digests of its files."""
    measurements, record = parquet.read_whole(path)
    piece = Piece(
        study=None if record["study"] is None else _bytes(record["study"]),
        metadata={int(i): _bytes(content) for i, content in record["metadata"].items()},
        measurements=measurements,
        measured=set(record["measured"]),
        rejected=[(trial, reason) for trial, reason in record["rejected"]],
    )
    return piece, record["digests"]


def _text(content: bytes) -> str:
    """Return bytes as text that stands for them exactly, be they text or not."""
    return content.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
