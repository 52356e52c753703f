from __future__ import annotations

import pytest

from batchlab.report.text_table import text_table

HEADER = ("Batch size", "Steps", "Interval", "Best metaparameters")
ROWS = [
    ("1", "12,345", "12,000 to 13,000", "learning_rate 0.0295 (0.01 to 0.04), momentum 0.99"),
    ("1,024", "80", "", ""),
]


def test_a_table_without_a_limit_has_a_line_for_each_row():
    assert text_table(HEADER, ROWS).splitlines() == [
        "Batch size   Steps          Interval  Best metaparameters",
        "         1  12,345  12,000 to 13,000  learning_rate 0.0295 (0.01 to 0.04), momentum 0.99",
        "     1,024      80",
    ]


def test_what_does_not_fit_beside_goes_below_with_its_batch_size():
    assert text_table(HEADER, ROWS, width=64).splitlines() == [
        "Batch size   Steps          Interval",
        "         1  12,345  12,000 to 13,000",
        "     1,024      80",
        "",
        "Batch size  Best metaparameters",
        "         1  learning_rate 0.0295 (0.01 to 0.04), momentum 0.99",
        "     1,024",
    ]


def test_a_text_wider_than_the_line_goes_on_below_itself_after_a_comma():
    assert text_table(HEADER, ROWS, width=60).splitlines()[4:] == [
        "Batch size  Best metaparameters",
        "         1  learning_rate 0.0295 (0.01 to 0.04),",
        "            momentum 0.99",
        "     1,024",
    ]


def test_a_part_wider_than_the_line_is_broken_between_words():
    assert text_table(HEADER, ROWS, width=40).splitlines()[4:] == [
        "Batch size  Best metaparameters",
        "         1  learning_rate 0.0295 (0.01",
        "            to 0.04), momentum 0.99",
        "     1,024",
    ]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 200])
def test_no_line_is_wider_and_no_number_is_broken(width):
    text = text_table(HEADER, ROWS, width=width)

    assert max(len(line) for line in text.splitlines()) <= width
    for cell in [cell for row in ROWS for cell in row]:
        for word in cell.split():
            assert word in text.split()


def test_a_word_wider_than_the_line_stays_whole():
    assert "0.123456789" in text_table(["B", "x"], [["1", "0.123456789"]], width=8)


def test_the_key_may_stand_elsewhere_and_opens_the_blocks_below():
    rows = [["3", "4", "digits", "digits/fc_128/sgd"]]

    assert text_table(["a", "b", "sweep", "workload"], rows, width=24, key=2).splitlines() == [
        "a  b   sweep",
        "3  4  digits",
        "",
        " sweep  workload",
        "digits  digits/fc_128/sgd",
    ]


def test_without_a_key_each_row_goes_on_below_itself():
    rows = [["present", "32", "digits: digits/fc_128/sgd"], ["missing", "100", "lm1b: lm1b/lstm/sgd"]]

    assert text_table(["data", "trials", "study"], rows, width=30, key=None).splitlines() == [
        "   data  trials",
        "    study",
        "present      32",
        "    digits: digits/fc_128/sgd",
        "missing     100",
        "    lm1b: lm1b/lstm/sgd",
    ]
    assert text_table(["data", "trials", "study"], rows, width=60, key=None).count("\n") == 2


def test_a_group_of_columns_stays_together_where_it_can():
    header, rows = ["B", "steps", "least", "most"], [["1", "200", "100", "300"]]

    assert text_table(header, rows, width=16, groups=[2]).splitlines()[0] == "B  steps"
    assert text_table(header, rows, width=16).splitlines()[0] == "B  steps  least"


def test_a_table_of_no_rows_is_its_header():
    assert text_table(["a", "b"], []) == "a  b"
