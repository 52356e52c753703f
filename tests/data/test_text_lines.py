from __future__ import annotations

import gzip

import pytest

from batchlab.data.text_lines import read_lines
from batchlab.errors import DataError


def test_only_line_feeds_end_a_line(tmp_path):
    (tmp_path / "text").write_bytes("one\u2028still\x0bone\ntwo\r\n\nthree".encode())

    assert list(read_lines(tmp_path / "text")) == ["one\u2028still\x0bone", "two", "", "three"]


def test_gzipped_lines_are_unpacked(tmp_path):
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"one\n", mtime=0) + gzip.compress(b"two\n", mtime=0))

    assert list(read_lines(tmp_path / "text.gz")) == ["one", "two"]


def test_every_byte_that_is_read_is_told(tmp_path):
    content = gzip.compress(bytes(range(97, 123)) * 1000)
    (tmp_path / "text.gz").write_bytes(content)
    told: list[int] = []

    list(read_lines(tmp_path / "text.gz", told.append))

    assert sum(told) == len(content)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text", b"", "text is empty"),
        ("text.gz", gzip.compress(b"", mtime=0), "text.gz is empty"),
        ("text", b"good\nb\xffd\n", "text, line 2: byte 1 is not valid UTF-8"),
        (
            "text.gz",
            gzip.compress(bytes(range(97, 123)) * 99, mtime=0)[:-9],
            "text.gz: the gzip file is truncated or damaged",
        ),
        ("text.gz", b"no gzip", "text.gz: the gzip file is truncated or damaged"),
    ],
)
def test_what_is_wrong_is_told_with_the_name_of_the_file(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)

    with pytest.raises(DataError, match=message) as caught:
        list(read_lines(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="gone cannot be read: No such file"):
        list(read_lines(tmp_path / "gone"))
