"""How values from outside are quoted."""

from __future__ import annotations

import pytest

from batchlab.errors import plain, shown, spelled, unknown_name


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\udcff", "\\udcff"),
        ("a\u202eb\u2028", "a\\u202eb\\u2028"),
        (8, "8"),
        ([16**5000], "a number of more than 4,300 digits"),
    ],
)
def test_a_value_is_quoted_on_one_line_and_steers_nothing(value, expected):
    assert shown(value) == expected
    assert shown(value).isprintable()


def test_a_long_value_is_cut_and_its_length_told():
    assert shown("x" * 10**6) == "x" * 100 + "... (1,000,000 characters)"


def test_a_value_nested_beyond_all_measure_is_named_as_that():
    value: list[object] = []
    for _ in range(100_000):
        value = [value]

    assert spelled(value) == "a value nested too deeply to be shown"


def test_letters_of_all_languages_stay():
    assert plain("Größe 批量") == "Größe 批量"


@pytest.mark.parametrize("name", ["x" * 10**6, "\x1b[31m", "", "²", "9" * 5000])
def test_an_unknown_name_is_quoted_within_bounds(name):
    sentence = unknown_name("study", name, ["digits", "nqm", "²", "9" * 5000, "7", "007", "x\ny"])

    assert sentence.isprintable()
    assert len(sentence) < 1_000
