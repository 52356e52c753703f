"""What is said of the critical batch size and its fit, from summaries made by hand."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from batchlab.analysis import Interval
from batchlab.core.protocol import Protocol
from batchlab.report.words.answer import answer_text
from batchlab.report.words.fit import critical_text, fit_facts
from tests.report.words.summaries import EXACT, with_fit


@pytest.mark.parametrize(
    ("b_crit", "interval", "sentence"),
    [
        (104.2, Interval(98.1, 276.0), "The critical batch size is 104 (95 % interval 98.1 to 276, from minima)."),
        (
            104.2,
            Interval(40.0, 276.0),
            "The critical batch size lies between 40 and 276 (95 % interval, from minima; the fit says 104).",
        ),
        (104.2, Interval(143.2, None), "The critical batch size is above 143 (95 %)."),
        (None, Interval(None, 88.0), "The critical batch size is below 88 (95 %)."),
        (None, Interval(None, None), "The critical batch size could not be determined."),
    ],
)
def test_the_critical_batch_size_never_stands_without_its_interval(make_summary, b_crit, interval, sentence):
    assert sentence in answer_text(with_fit(make_summary(), b_crit=b_crit, b_crit_ci=interval))


def test_few_trials_give_a_hint(make_summary):
    summary = with_fit(make_summary(num_trials=3), b_crit=104.2, b_crit_ci=Interval(98.1, 276.0))

    assert (
        "A fit puts the critical batch size at 104 (95 % interval 98.1 to 276, from minima): a hint, no more, "
        "from so few trials (3)."
    ) in answer_text(summary)


@pytest.mark.parametrize(
    ("changes", "ending"),
    [
        ({}, ": a hint, no more, from so few trials (3)."),
        (
            {"contradicted_by": (4096,)},
            ", but batch size 4,096 trained for more steps than the fit predicts without meeting the goal: see the "
            "notes.",
        ),
    ],
)
def test_one_bound_alone_is_no_firmer_than_an_interval(make_summary, changes, ending):
    summary = with_fit(make_summary(num_trials=3), b_crit=None, b_crit_ci=Interval(143.2, None), **changes)

    assert f"A fit puts the critical batch size above 143 (95 %){ending}" in answer_text(summary)


def test_a_critical_batch_size_of_minima_that_failed_to_be_confirmed_is_a_fits(make_summary):
    summary = with_fit(make_summary(seeds=6), b_crit=104.2, b_crit_ci=Interval(98.1, 276.0), estimand="minimum")
    failed = dataclasses.replace(summary.rows[1].confirmed, steps=None)
    rows = (summary.rows[0], dataclasses.replace(summary.rows[1], confirmed=failed), *summary.rows[2:])

    assert (
        "A fit puts the critical batch size at 104 (95 % interval 98.1 to 276, from minima), but batch size 2 failed "
        "to be confirmed."
    ) in answer_text(replace(summary, rows=rows, headline="minimum"))


def test_a_hyperbola_that_does_not_hold_is_named(make_summary):
    summary = with_fit(make_summary(), b_crit=104.2, b_crit_ci=Interval(98.1, 276.0))
    closer = replace(summary, regimes=dataclasses.replace(summary.regimes, source="shape"))
    summary = replace(summary, regimes=dataclasses.replace(summary.regimes, source="shape", departs=True))

    assert "describe" not in answer_text(closer)  # a closer curve is no proof
    assert "A hyperbola does not describe these steps well; fitted all the same, its critical" in answer_text(summary)


def test_a_contradicted_fit_says_so(make_summary):
    summary = with_fit(make_summary(), b_crit=104.2, b_crit_ci=Interval(98.1, 276.0), contradicted_by=(2048,))

    assert "but batch size 2,048 trained for more steps than the fit predicts without" in answer_text(summary)


def test_confirmed_medians_are_named_as_what_was_fitted(make_summary):
    assert ", from confirmed medians)." in answer_text(make_summary(seeds=6))


def test_an_exact_critical_batch_size_says_why_it_has_no_interval(make_summary):
    summary = with_fit(make_summary(num_trials=5, protocol=EXACT), b_crit=110.0)

    assert "The critical batch size is 110, without an interval: steps are exact here." in answer_text(summary)


def test_no_fit_is_said(make_summary):
    assert "The critical batch size could not be determined." in answer_text(make_summary(sizes=(1, 2)))


@pytest.mark.parametrize(
    ("b_crit", "interval", "text"),
    [
        (104.2, Interval(98.1, 276.0), "104 (98.1 to 276)"),
        (104.2, Interval(143.2, None), "> 143"),
        (None, Interval(None, None), "not bounded"),
    ],
)
def test_the_critical_batch_size_in_a_few_characters(make_summary, b_crit, interval, text):
    assert text == critical_text(with_fit(make_summary(), b_crit=b_crit, b_crit_ci=interval).fit)


def test_without_a_fit_there_is_nothing_to_show():
    assert critical_text(None) == "no fit"


def test_fit_details_name_what_was_fitted_and_what_contradicts_it(make_summary):
    summary = with_fit(make_summary(unreached=(1, 2)), contradicted_by=(2,), censored=(1, 2))
    found = dict(fit_facts(summary.fit))

    assert found["Fitted to"] == "minima"
    late = dict(fit_facts(replace(summary.fit, lateness=1.05)))["Fitted to"]
    assert late == "minima, each in the middle of the gap before its evaluation, 5 % earlier"
    assert " to " in found["95 % interval"]
    assert found["Largest deviation from the curve"].endswith(" %")
    assert "AIC" in found["Alternative S_min + (E_min / B)^a"]
    assert found["Not reached, so a lower bound only"] == "batch size 1 and 2"
    assert found["Trained for more steps than the fit predicts"] == "batch size 2"


def test_exact_steps_have_no_interval_in_the_details(make_summary):
    found = dict(fit_facts(make_summary(num_trials=5, protocol=EXACT).fit))

    assert found["95 % interval"] == "none: steps are exact here"
    assert "Trained for more steps than the fit predicts" not in found


def test_exact_steps_that_no_hyperbola_describes_are_told_as_such(make_summary):
    summary = make_summary(protocol=Protocol(kind="full", is_closed_form=True))
    regimes = dataclasses.replace(summary.regimes, source="shape", departs=True)
    shape = dataclasses.replace(summary, regimes=regimes)

    assert "The critical batch size is " in answer_text(summary)
    assert "A hyperbola does not describe these steps well; fitted all the same, its critical" in answer_text(shape)
