"""Lines of a file that grows."""

from __future__ import annotations

from batchlab.loops.tail import LONGEST, Tail


def test_only_whole_lines_are_read_each_once(tmp_path):
    path = tmp_path / "out"
    tail = Tail(path, 0)
    assert list(tail.lines()) == []

    path.write_bytes(b"one\ntw")
    assert list(tail.lines()) == [("one\n", 4)]
    path.write_bytes(b"one\ntwo\n")
    assert list(tail.lines()) == [("two\n", 8)]
    assert list(tail.lines()) == []


def test_what_has_no_newline_is_a_line_at_the_end(tmp_path):
    (tmp_path / "out").write_bytes(b"one\ntwo")

    assert [line for line, _ in Tail(tmp_path / "out", 0).lines(is_last=True)] == ["one\n", "two"]


def test_a_file_that_was_begun_anew_is_read_from_its_start(tmp_path):
    (tmp_path / "out").write_bytes(b"long line of before\n")
    tail = Tail(tmp_path / "out", 20)
    (tmp_path / "out").write_bytes(b"new\n")

    assert list(tail.lines()) == [("new\n", 4)]


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path):
    (tmp_path / "out").write_bytes(b"x" * (LONGEST + 5) + b"\nnext\n")

    assert [len(line) for line, _ in Tail(tmp_path / "out", 0).lines()] == [LONGEST, 6, 5]
