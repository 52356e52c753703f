from __future__ import annotations

import pytest

from batchlab.analysis.text import bounds, count, listed, significant


@pytest.mark.parametrize(
    ("value", "expected"),
    [(105.716, "106"), (999.6, "1,000"), (12345.6, "12,300"), (0.02954, "0.0295"), (39.0, "39"), (1.3e7, "13,000,000")],
)
def test_three_digits_are_kept(value, expected):
    assert expected == significant(value)


def test_counts_separate_thousands():
    assert count(20000) == "20,000"


def test_open_bounds_are_shown_as_open():
    assert bounds(95, 118) == "95 to 118"
    assert bounds(95, None) == "> 95"
    assert bounds(None, 118) == "< 118"
    assert bounds(None, None) == "not bounded"


def test_lists_read_as_sentences():
    assert listed([8]) == "8"
    assert listed([1, 2, 4]) == "1, 2 and 4"
