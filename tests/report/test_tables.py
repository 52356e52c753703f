from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from batchlab.analysis import Interval
from batchlab.report.tables import (
    STEPS_HEADER,
    format_interval,
    format_metaparameters,
    format_share,
    format_steps,
    steps_table,
)


@pytest.fixture
def row(make_summary):
    return make_summary(sizes=(1,)).rows[0]


def test_steps_have_their_thousands_separated(row):
    assert format_steps(dataclasses.replace(row, steps=1234)) == "1,234"


def test_steps_not_reached_say_how_long_was_tried(row):
    assert format_steps(dataclasses.replace(row, steps=None)) == "not reached within 20,000 steps"


@pytest.mark.parametrize(
    ("interval", "expected"),
    [(Interval(1234, 1390), "1,234 to 1,390"), (Interval(1234, None), "1,234 to > 1,851"), (None, "")],
)
def test_intervals_show_an_open_bound_as_open(row, interval, expected):
    assert expected == format_interval(dataclasses.replace(row, interval=interval, end_step=1851))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.029512, "0.0295"),
        (0.9, "0.9"),
        (0.95, "0.95"),
        (0.999531, "0.999531"),
        (1.0, "1"),
        (0.0, "0"),
        (522526.0, "523,000"),
    ],
)
def test_metaparameters_keep_the_digits_that_matter(value, expected):
    assert f"momentum {expected}" == format_metaparameters({"momentum": value})


def test_several_metaparameters_are_listed_in_their_order():
    assert format_metaparameters({"b": 2.0, "a": 1.0}) == "b 2, a 1"


def test_shares_are_per_cent():
    assert (format_share(0.8333), format_share(None)) == ("83 %", "")


def test_the_table_has_a_cell_under_every_heading(make_summary):
    summary = make_summary(sizes=(1, 4, 16, 64), unreached=(64,), at_boundary=("momentum",))
    rows = steps_table(summary)

    assert {len(STEPS_HEADER)} == {len(cells) for cells in rows}
    assert (rows[0][0], rows[0][3], rows[0][4]) == ("1", "100 %", "perfect")
    assert rows[0][5:] == ("learning_rate 0.01, momentum 0.9", "32", "3", "1", "momentum")
    assert rows[3] == ("64", "not reached within 20,000 steps", "", "", "", "", "32", "3", "1", "")


def test_tables_do_not_bring_in_drawing():
    program = "import sys, batchlab.report.tables; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
