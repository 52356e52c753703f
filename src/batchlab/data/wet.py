"""The WET format of Common Crawl: a WARC file whose `conversion` records hold the text of web pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from batchlab.data.text_lines import Told, decode, ignore, open_text
from batchlab.errors import DataError, shown, spelled

MOST_PAGE_BYTES = 1 << 28
"""A longer record is taken for a broken header."""

_MOST_LINE_BYTES = 1 << 16
_MOST_FIELDS = 1_000
_WAY_OUT = "Replace the file with the published one."


def read_pages(path: Path, told: Told = ignore) -> Iterator[str]:
    """Yield the text of every web page in a WET file; records of other kinds are passed over."""
    number = 0
    with open_text(path, told) as file:
        while (header := _read_header(file, f"{path}, record {number + 1}")) is not None:
            number += 1
            content = _read_content(file, header, f"{path}, record {number}")
            if header.get("warc-type") == "conversion":
                yield decode(content, f"{path}, record {number}")
    if number == 0:
        raise DataError(f"{path} is empty. {_WAY_OUT}")


def _read_header(file: IO[bytes], source: str) -> dict[str, str] | None:
    """Return the fields of the next record by name in small letters, or None at the end of the file."""
    version = _next_line(file)
    if version is None:
        return None
    if not version.startswith(b"WARC/"):
        raise DataError(f"{source} starts with {version[:20]!r}, a record with b'WARC/'. {_WAY_OUT}")
    header: dict[str, str] = {}
    while line := file.readline(_MOST_LINE_BYTES).strip():
        if len(header) > _MOST_FIELDS:
            raise DataError(f"{source}: its header has more than {_MOST_FIELDS} fields. {_WAY_OUT}")
        name, _, value = decode(line, source).partition(":")
        header[name.strip().lower()] = value.strip()
    return header


def _next_line(file: IO[bytes]) -> bytes | None:
    """Return the next line that is not blank: two blank ones end a record."""
    while line := file.readline(_MOST_LINE_BYTES):
        if line.strip():
            return line.strip()
    return None


def _read_content(file: IO[bytes], header: dict[str, str], source: str) -> bytes:
    length = header.get("content-length", "")
    if not (re.fullmatch("[0-9]{1,18}", length) and int(length) <= MOST_PAGE_BYTES):
        raise DataError(
            f"{source}: Content-Length {shown(spelled(length))} is not in 0 to {MOST_PAGE_BYTES}. {_WAY_OUT}"
        )
    content = file.read(int(length))
    if len(content) < int(length):
        raise DataError(f"{source} ends after {len(content):,} of {int(length):,} bytes. {_WAY_OUT}")
    return content
