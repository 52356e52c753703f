"""What is said of files that are not as they were written."""

from __future__ import annotations

from pathlib import Path

from batchlab.store.seal import damaged


def test_what_the_reader_of_tables_said_of_a_damaged_one_went_to_the_terminal_as_it_was():
    message = str(damaged(Path("lab/measurements.parquet"), "don't know what type: \x0f\x1b[31m"))

    assert message.startswith("lab/measurements.parquet is damaged: don't know what type: \\x0f\\x1b[31m. ")


def test_what_is_said_of_a_damaged_file_has_an_end():
    assert len(str(damaged(Path("lab/study.json"), "x" * 100_000))) < 1_200
