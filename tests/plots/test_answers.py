from __future__ import annotations

from dataclasses import replace

import pytest

from batchlab.analysis import Interval
from batchlab.plots.answers import answer_label, critical_label, fit_label


@pytest.fixture
def fit(make_summary):
    return replace(
        make_summary().fit, s_min=40.2, e_min=4123.0, b_crit=102.6, b_crit_ci=Interval(95.2, 118.0), estimand="minimum"
    )


def test_every_answer_is_named_with_its_numbers(make_summary):
    rows = make_summary(seeds=6).rows

    assert "confirmed median of 6 seeds" == answer_label("confirmed", rows)
    assert "best of 6 (median), from 32 trials" == answer_label("best_of", rows)
    assert "minimum of 32 trials" == answer_label("minimum", rows)


def test_numbers_that_differ_are_ranges(make_summary):
    rows = [*make_summary(num_trials=16).rows, *make_summary(num_trials=100).rows]

    assert "best of 3 to 18 (median), from 16 to 100 trials" == answer_label("best_of", rows)
    assert "one trial" == answer_label("minimum", make_summary(num_trials=1).rows)


def test_a_fit_tells_what_it_was_fitted_to(fit):
    assert "fit of minima: 40.2 + 4,120 / batch size" == fit_label(fit)
    assert "fit of confirmed medians: 40.2 + 4,120 / batch size" == fit_label(replace(fit, estimand="confirmed"))


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (Interval(95.2, 118.0), "critical batch size 103 (95.2 to 118)"),
        (Interval(95.2, None), "critical batch size > 95.2"),
        (Interval(None, 118.0), "critical batch size < 118"),
        (Interval(None, None), "critical batch size not bounded"),
    ],
)
def test_a_critical_batch_size_is_told_as_far_as_it_is_known(fit, interval, expected):
    assert expected == critical_label(replace(fit, b_crit_ci=interval))


def test_without_chance_there_is_no_interval(fit):
    exact = replace(fit, b_crit_ci=Interval(None, None), is_exact=True)

    assert "critical batch size 103 (no chance, no interval)" == critical_label(exact)
