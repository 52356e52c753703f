from __future__ import annotations

import dataclasses

from batchlab.report.words import answer, facts, fit_facts, sensitivity, training_cost


def test_the_answer_tells_steps_critical_batch_size_and_both_ends(make_summary):
    summary = make_summary()
    text = answer(summary)

    assert f"are {summary.best.steps}, at batch size" in text
    assert "(12 batch sizes, n = 32 complete trials each)" in text
    assert f"The critical batch size is {summary.fit.b_crit:.3g} (95 % interval " in text
    assert f"Scaling is perfect up to batch size {summary.scaling.end_of_perfect}." in text
    assert f"The maximum useful batch size is {summary.scaling.max_useful}: " in text


def test_a_bound_alone_is_told_as_a_bound(make_summary):
    summary = make_summary()
    lower = dataclasses.replace(summary, fit=dataclasses.replace(summary.fit, b_crit_ci=(143.2, None)))
    neither = dataclasses.replace(summary, fit=dataclasses.replace(summary.fit, b_crit_ci=(None, None)))

    assert "The critical batch size is above 143." in answer(lower)
    assert "The critical batch size could not be determined." in answer(neither)


def test_a_curve_without_plateau_gives_a_lower_bound_of_the_useful_batch_size(make_summary):
    text = answer(make_summary(sizes=(1, 2, 4)))

    assert "Scaling is perfect as far as it was tried, to batch size 4." in text
    assert "the maximum useful batch size is at least 4." in text


def test_nothing_reached_is_said_plainly(make_summary):
    text = answer(make_summary(sizes=(1, 2), unreached=(1, 2)))

    assert (
        text == "No trial reached val/classification_error < 0.03 at any batch size "
        "(2 batch sizes, n = 32 complete trials each)."
    )


def test_one_batch_size_says_nothing_of_scaling(make_summary):
    assert answer(make_summary(sizes=(8,))).endswith("One batch size tells nothing about scaling.")


def test_fit_details_hold_both_intervals_and_the_alternative(make_summary):
    found = dict(fit_facts(make_summary().fit))

    assert "95 % interval, bootstrap over trials, 20 resamples" in found
    assert " to " in found["95 % interval, delta method"]
    assert found["Largest deviation from the curve"].endswith(" %")
    assert "AIC" in found["Alternative S_min + (E_min / B)^a"]


def test_sensitivity_holds_three_thresholds_of_each(make_summary):
    summary = make_summary()
    ends, useful = (value for _, value in sensitivity(summary))

    assert f"80 %: {summary.scaling.end_of_perfect}" in ends
    assert f"25 %: {summary.scaling.max_useful}" in useful
    assert (ends.count(", "), useful.count(", ")) == (2, 2)


def test_the_saving_of_the_race_is_a_share_of_the_full_protocol():
    told = training_cost({"trained_steps": 12_000, "full_steps": 48_000})

    assert told == "12,000 steps were trained instead of 48,000 in full: the race saved 75 %."
    assert training_cost({"trained_steps": 12_000}) == "12,000 steps were trained."
    assert training_cost({"protocol": "full"}) is None


def test_nested_values_are_named_by_their_place():
    assert facts({"a": [1, 2], "b": {"c": {"d": "x"}}}) == [("a", "1, 2"), ("b.c.d", "x")]
