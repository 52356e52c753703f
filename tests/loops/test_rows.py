"""Rows from reports: the reports of one step are one row."""

from __future__ import annotations

import pytest

from batchlab.errors import TrainerError
from batchlab.loops.report import Report
from batchlab.loops.rows import Rows


def rows_of(*reports):
    rows = Rows("val/loss")
    found = [rows.add(Report(step, metrics)) for step, metrics in reports]
    return [(row.step, dict(row.metrics)) for row in [*found, rows.end()] if row is not None]


def test_reports_of_one_step_are_one_row():
    found = rows_of((5, {"train/loss": 1.0}), (5, {"val/loss": 2.0}), (9, {"val/loss": 3.0}))

    assert found == [(5, {"train/loss": 1.0, "val/loss": 2.0}), (9, {"val/loss": 3.0})]


def test_a_step_that_goes_back_is_refused():
    rows = Rows("val/loss")
    rows.add(Report(5, {}))

    with pytest.raises(TrainerError, match="step 4 is reported after step 5: report steps as they come"):
        rows.add(Report(4, {}))


def test_after_a_stop_what_is_known_may_be_reported_again_and_stays():
    rows = Rows("val/loss")
    found = [rows.add(Report(step, {"val/loss": step})) for step in (10, 20, 30)]
    rows.resume()
    found += [rows.add(Report(step, {"val/loss": -step})) for step in (20, 30, 40)]

    kept = [(row.step, row.metrics["val/loss"]) for row in [*found, rows.end()] if row is not None]
    assert kept == [(10, 10), (20, 20), (30, 30), (40, -40)]


def test_a_row_at_the_end_is_ready_once_it_has_the_metric_of_the_goal():
    rows = Rows("val/loss")
    rows.add(Report(10, {"train/loss": 1.0}))

    assert rows.ready(end=10) is None
    rows.add(Report(10, {"val/loss": 2.0}))
    assert rows.ready(end=11) is None
    assert rows.ready(end=10).metrics == {"train/loss": 1.0, "val/loss": 2.0}
    assert rows.end() is None


def test_it_knows_what_was_reported():
    rows = Rows("val/loss")
    assert (rows.step, rows.has_metric) == (-1, False)

    rows.add(Report(3, {"loss": 1.0}))
    assert (rows.step, rows.has_metric, rows.names) == (3, False, {"loss"})
