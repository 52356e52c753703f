"""What is said of the regimes, from summaries made by hand."""

from __future__ import annotations

from dataclasses import replace

from batchlab.report.words.answer import answer_text
from batchlab.report.words.regimes import regime_facts, regime_sentences
from tests.report.words.summaries import EXACT, with_fit, with_regimes


def test_both_ends_come_with_their_range(make_summary):
    summary = with_regimes(make_summary(), (26.1, 24.5, 69.0), (417.0, 392.0, 1104.0))

    assert regime_sentences(summary) == [
        "Scaling is perfect (efficiency of 80 % or more) up to batch size 26 (range 24 to 69).",
        "Beyond batch size 417 (range 392 to 1,104), larger ones save at most a fifth of the steps.",
    ]


def test_regimes_of_a_contradicted_fit_are_the_fits_and_end_where_the_goal_was_met(make_summary):
    summary = with_fit(make_summary(unreached=(2048,)), contradicted_by=(2048,))

    assert regime_sentences(with_regimes(summary, (26.1, 24.5, 69.0), (417.0, 392.0, 1000.0))) == [
        "By the fit, scaling is perfect (efficiency of 80 % or more) up to batch size 26 (range 24 to 69).",
        "By the fit, beyond batch size 417 (range 392 to 1,000), larger ones, up to 1,024, the largest that met the "
        "goal, save at most a fifth of the steps.",
    ]


def test_regimes_of_minima_that_failed_to_be_confirmed_are_the_fits(make_summary):
    summary = with_regimes(make_summary(seeds=6), (26.1, 24.5, 69.0), (417.0, 392.0, 1104.0), source="fit")
    first, *others = summary.rows
    failed = replace(first, confirmed=replace(first.confirmed, steps=None))

    assert [sentence[:12] for sentence in regime_sentences(replace(summary, rows=(failed, *others)))] == 2 * [
        "By the fit, "
    ]


def test_ends_beyond_what_was_tried_are_not_extrapolated(make_summary):
    summary = with_regimes(make_summary(sizes=(16, 32, 64)), (90.0, 70.0, 200.0), (900.0, 500.0, 2000.0))

    assert regime_sentences(summary) == [
        "Scaling is perfect as far as it was tried, to batch size 64.",
        "Steps still fall at batch size 64, the largest that met the goal.",
    ]


def test_ends_below_what_was_tried_are_not_extrapolated(make_summary):
    summary = with_regimes(make_summary(sizes=(16, 32, 64)), (2.0, 1.0, 3.0), (9.0, 5.0, 12.0))

    assert regime_sentences(summary) == [
        "Perfect scaling ends below batch size 16, the smallest that met the goal.",
        "Beyond batch size 16, the smallest, larger ones save at most a fifth of the steps.",
    ]


def test_an_open_range_makes_no_claim(make_summary):
    summary = with_regimes(make_summary(), (26.0, 24.0, None), (417.0, None, None))

    assert regime_sentences(summary) == [
        "Where perfect scaling ends is not known: somewhere above 24.",
        "Where larger batch sizes stop paying is not known.",
    ]


def test_thin_data_tell_what_would_tell(make_summary):
    """The first end is known to a factor of 2.9, the second to one of 5: more than two octaves."""
    summary = with_regimes(make_summary(), (26, 24, 69), (417, 392, 1960), is_thin=True, advice="Run 99 trials.")

    assert regime_sentences(summary) == [
        "Scaling is perfect (efficiency of 80 % or more) up to batch size 26 (range 24 to 69).",
        "Run 99 trials.",
    ]
    assert answer_text(summary).endswith("(range 24 to 69). Run 99 trials.")


def test_few_trials_make_no_firm_sentence(make_summary):
    summary = with_regimes(
        make_summary(num_trials=5), (26, 24, 69), (417, 392, 400), is_thin=True, advice="Run 6 or more."
    )

    assert regime_sentences(summary) == ["Run 6 or more."]


def test_exact_ends_need_no_range(make_summary):
    summary = with_regimes(make_summary(num_trials=5, protocol=EXACT), (26.1, None, None), (417.0, None, None))

    assert regime_sentences(summary) == [
        "Scaling is perfect (efficiency of 80 % or more) up to batch size 26.",
        "Beyond batch size 417, larger ones save at most a fifth of the steps.",
    ]


def test_the_facts_of_the_regimes_say_what_they_were_read_from(make_summary):
    summary = with_regimes(make_summary(), (26.1, 24.5, 69.0), (None, None, None))
    found = regime_facts(summary)

    assert [value for _, value in found[:2]] == ["26 (range 24 to 69)", "not known"]
    assert found[2][1].startswith("the fit")
    shape = with_regimes(summary, (26, 24, 69), (None, None, None), source="shape")
    assert regime_facts(shape)[2][1].startswith("the closest convex curve")
