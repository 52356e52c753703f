from __future__ import annotations

import gzip
import os
import shutil

import pytest

from batchlab.data import text_lines
from batchlab.data.text_lines import open_text, read_lines
from batchlab.errors import DataError
from batchlab.files import whole_file


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


def test_a_line_without_an_end_is_refused_by_file_and_number(tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "MOST_LINE_BYTES", 10, raising=False)
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"123456789\n" + b"x" * 11))

    with pytest.raises(DataError, match=r"text\.gz, line 2 has more than 10 bytes\. Replace") as caught:
        list(read_lines(tmp_path / "text.gz"))
    assert "\n" not in str(caught.value)


def test_a_read_that_fails_while_another_file_is_written_is_no_full_disk(tmp_path):
    """Two parts: the wrong checksum of the first is met before the end."""
    first = gzip.compress(b"one\n" * 10**6, compresslevel=0).replace(b"one", b"two", 1)
    (tmp_path / "text.gz").write_bytes(first + gzip.compress(b"three\n"))

    with (
        pytest.raises(DataError, match="text.gz: the gzip file is truncated or damaged"),
        open_text(tmp_path / "text.gz") as file,
        whole_file(tmp_path / "copy") as copy,
    ):
        shutil.copyfileobj(file, copy)
    assert [path.name for path in tmp_path.iterdir()] == ["text.gz"]


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="gone cannot be read: No such file"):
        list(read_lines(tmp_path / "gone"))


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "lines.txt")

    with pytest.raises(DataError, match=r"lines\.txt cannot be read: it is no regular file"):
        list(read_lines(tmp_path / "lines.txt"))
