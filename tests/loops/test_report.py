"""What a loop tells: which lines are reports, and which reports cannot be."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from batchlab.errors import TrainerError
from batchlab.loops.report import Report, make_report, read_by_pattern, read_json_line


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ('{"step": 5, "val/loss": 0.3}', (5, {"val/loss": 0.3})),
        ('  {"val/loss": 1, "step": 0}\n', (0, {"val/loss": 1})),
        ('{"step": 5, "val/loss": NaN, "time": "12:00", "on": true, "none": null}', (5, {"val/loss": math.nan})),
        ('\r 10/40 |###  \r 15/40 |####{"step": 15, "val/loss": 1}', (15, {"val/loss": 1})),  # behind a progress bar
        ('spec: {"step": 5}', None),
        ("\r 10/40 |###", None),
        ("epoch 5 begins", None),
        ('{"epoch": 5}', None),
        ('{"step": 5, "val/lo', None),
        ("[5, 0.3]", None),
        ("", None),
        ("{" * 100_000, None),
    ],
)
def test_a_json_table_with_a_step_is_a_report_and_nothing_else(line, read):
    assert repr(read_json_line(line)) == repr(read)


def test_patterns_find_the_numbers_of_a_line():
    patterns = {"step": re.compile("iter ([0-9]+)"), "val/loss": re.compile(r"loss=([-+.0-9a-z]+)")}

    assert read_by_pattern("iter 12 | loss=2.5e-1", patterns) == (12, {"val/loss": 0.25})
    assert math.isnan(read_by_pattern("iter 12 | loss=nan", patterns)[1]["val/loss"])
    assert read_by_pattern("iter 12", patterns) is None
    assert read_by_pattern("loss=3", patterns) is None
    assert read_by_pattern("iter 12 loss", {**patterns, "val/loss": re.compile("loss(?: ([0-9]+))?")}) is None
    with pytest.raises(TrainerError, match=r"pattern.val/loss has found oh, which is no number"):
        read_by_pattern("iter 12 loss=oh", patterns)


@pytest.mark.parametrize(
    ("step", "metrics", "sentence"),
    [
        (-1, {}, "step = -1 is no whole number from 0"),
        (1.5, {}, "step = 1.5 is no whole number"),
        (True, {}, "step = True is no whole number"),
        ("5", {}, "step = 5 is no whole number"),
        (10**30, {}, "is no whole number from 0"),
        (5, 0.3, "0.3 at step 5: report a table of metrics"),
        (5, {"val/loss": "low"}, "val/loss = low at step 5 is no number"),
        (5, {"val/loss": [1, 2]}, "val/loss = [1, 2] at step 5 is no number"),
        (5, {"val/loss": True}, "val/loss = True at step 5 is no number"),
        (5, {"trial_id": 1.0}, "A metric cannot be called trial_id"),
        (5, {"": 1.0}, "A metric cannot be called"),
        (5, {3: 1.0}, "A metric cannot be called 3"),
        (5, {f"m{i}": 0.0 for i in range(201)}, "201 metrics at step 5 are more than 200"),
    ],
)
def test_what_cannot_be_is_one_sentence(step, metrics, sentence):
    with pytest.raises(TrainerError) as caught:
        make_report(step, metrics)

    assert sentence in str(caught.value)


def test_numbers_of_other_libraries_are_numbers_and_none_is_not_measured():
    report = make_report(5.0, {"a": np.float32(0.5), "b": np.array(2), "c": None, "d": math.inf})

    assert report == Report(5, {"a": 0.5, "b": 2.0, "d": math.inf})


def test_examples_are_a_count_and_no_metric():
    report = make_report(5, {"examples": 480.0, "val/loss": 0.3})

    assert (report.examples, report.metrics) == (480, {"val/loss": 0.3})
    for wrong in (-1, 0.5, "many", True, math.nan):
        with pytest.raises(TrainerError, match="report the number of examples so far"):
            make_report(5, {"examples": wrong})
