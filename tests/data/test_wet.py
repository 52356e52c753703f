from __future__ import annotations

import gzip

import pytest

from batchlab.data.wet import read_pages
from batchlab.errors import DataError


def record(kind: str, content: bytes, length: int | None = None) -> bytes:
    """One record as Common Crawl writes it."""
    header = f"WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Type: text/plain\r\nContent-Length: "
    return (
        header.encode() + str(len(content) if length is None else length).encode() + b"\r\n\r\n" + content + b"\r\n\r\n"
    )


INFO = record("warcinfo", b"Software-Info: a crawler\r\n")
PAGES = (
    INFO
    + record("conversion", "Größe\nzwei".encode())
    + record("conversion", b"")
    + record("conversion", b"WARC/1.0\n")
)


def test_only_the_text_of_pages_is_read(tmp_path):
    (tmp_path / "some.warc.wet").write_bytes(PAGES)

    assert list(read_pages(tmp_path / "some.warc.wet")) == ["Größe\nzwei", "", "WARC/1.0\n"]


def test_every_record_may_be_gzipped_on_its_own(tmp_path):
    (tmp_path / "some.warc.wet.gz").write_bytes(gzip.compress(INFO) + gzip.compress(record("conversion", b"text")))

    assert list(read_pages(tmp_path / "some.warc.wet.gz")) == ["text"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"<html>", "record 1 starts with b'<html>'"),
        (INFO + b"WARC/1.0\r\nWARC-Type: conversion\r\n\r\n", "record 2: Content-Length '' is not in 0 to"),
        (INFO + record("conversion", b"", 10**15), "record 2: Content-Length '1000000000000000' is not in 0 to"),
        (record("conversion", b"cut", 100), "record 1 ends after 7 of 100 bytes"),
        (record("conversion", b"\xff"), "record 1: byte 0 is not valid UTF-8"),
    ],
)
def test_a_broken_record_is_named(tmp_path, content, message):
    (tmp_path / "some.wet").write_bytes(content)

    with pytest.raises(DataError, match=f"some.wet.*{message}") as caught:
        list(read_pages(tmp_path / "some.wet"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", ["9" * 5000, "²", "-1", "1_0"])
def test_a_length_that_is_no_number_is_named(tmp_path, length):
    path = tmp_path / "pages.wet"
    path.write_text(f"WARC/1.0\nContent-Length: {length}\n\n", encoding="utf-8")

    with pytest.raises(DataError, match="Content-Length .* is not in 0 to"):
        list(read_pages(path))


def test_a_header_without_an_end_is_named(tmp_path):
    path = tmp_path / "pages.wet"
    path.write_text("WARC/1.0\n" + "".join(f"field-{number}: x\n" for number in range(2000)))

    with pytest.raises(DataError, match="its header has more than 1000 fields"):
        list(read_pages(path))
