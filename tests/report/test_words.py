"""Every sentence, from summaries made by hand."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from batchlab.analysis import BestOf, Interval
from batchlab.analysis.curve.regime_end import RegimeEnd
from batchlab.core.goal import Goal
from batchlab.core.protocol import Protocol
from batchlab.report import words
from batchlab.report.tables import best_text

RACE = Protocol(kind="race", race_factor=1.5, max_steps=50_000)
EXACT = Protocol(kind="full", max_steps=20_000, is_grid=True, is_closed_form=True)
GOAL = "val/classification_error < 0.03"


def with_fit(summary, **changes):
    return dataclasses.replace(summary, fit=dataclasses.replace(summary.fit, **changes))


def with_regimes(summary, perfect, maximal, **changes):
    changed = {"is_thin": False, "advice": None, "perfect_up_to": RegimeEnd(*perfect), **changes}
    regimes = dataclasses.replace(summary.regimes, maximal_from=RegimeEnd(*maximal), **changed)
    return dataclasses.replace(summary, regimes=regimes)


# The headline


def with_best(summary, **changes):
    """Return the summary with the answers of its last row changed, so that it has the fewest steps."""
    *rows, last = summary.rows
    return dataclasses.replace(summary, rows=(*rows, dataclasses.replace(last, **changes)))


def test_a_confirmed_answer_says_what_it_is_the_median_of(make_summary):
    summary = make_summary(sizes=(1, 4, 16), seeds=6)
    confirmed = dataclasses.replace(summary.rows[-1].confirmed, steps=205.5, interval=Interval(190, 260))
    text = words.answer(with_best(summary, confirmed=confirmed))

    assert text.startswith(
        f"The fewest steps to {GOAL} are 205.5 at batch size 16: the median over 6 fresh "
        "seeds of the best configuration, from n = 32 complete trials at each of 3 batch sizes. "
    )


def test_best_of_m_says_what_it_is_the_median_of(make_summary):
    summary = make_summary(sizes=(1, 4, 16))
    text = words.answer(with_best(summary, best_of=BestOf(6, 205.0, Interval(190, None))))

    assert text.startswith(
        f"The fewest steps to {GOAL} are 205 at batch size 16: the median steps of the best "
        "of 6 trials, from n = 32 complete trials at each of 3 batch sizes. "
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"num_trials": 3}, "too few for an interval (6 give one)"),
        ({"protocol": Protocol(kind="imported")}, "the paper's statistic, which has no interval"),
        ({"num_trials": 5, "protocol": EXACT}, "exact, so without an interval"),
        (
            {"num_trials": 5, "protocol": Protocol(kind="full", is_grid=True)},
            "points of a grid, which give no interval",
        ),
        ({"is_open": (1, 4, 16)}, "of which too few met the goal for an interval"),
    ],
)
def test_a_minimum_says_why_it_has_no_interval(make_summary, options, reason):
    summary = with_best(make_summary(sizes=(1, 4, 16), **options), steps=205)
    num_trials = options.get("num_trials", 32)

    assert words.answer(summary).startswith(
        f"The fewest steps to {GOAL} are 205 at batch size 16: the minimum of n = {num_trials} complete trials at each "
        f"of 3 batch sizes, {reason}. "
    )


def test_different_numbers_of_trials_are_told(make_summary):
    summary = with_best(make_summary(sizes=(1, 4, 16), num_trials=3), num_trials=2)

    assert "n = 2 to 3 complete trials at each of 3 batch sizes" in words.answer(summary)


def test_nothing_reached_within_the_budget_is_said_plainly(make_summary):
    assert words.answer(make_summary(sizes=(1, 2), unreached=(1, 2))) == (
        f"No trial met {GOAL} at any batch size within the budget of 20,000 steps (n = 32 complete trials at each "
        "of 2 batch sizes)."
    )


def test_nothing_reached_before_the_race_ended_is_another_thing(make_summary):
    assert words.answer(make_summary(sizes=(1,), unreached=(1,), protocol=RACE)) == (
        f"No trial met {GOAL} at any batch size before the race ended at step 20,000 (n = 32 complete trials at "
        "one batch size)."
    )


def test_both_ends_of_training_are_told_where_both_happened(make_summary):
    summary = make_summary(sizes=(1, 2), unreached=(1, 2), protocol=RACE)

    assert "before the race ended at step 20,000 or within the budget of 50,000 steps" in words.answer(
        with_best(summary, end_step=50_000)
    )


def test_a_goal_met_at_the_start_tells_nothing(make_summary):
    summary = with_best(make_summary(sizes=(1, 4, 16), num_trials=3), steps=0)

    assert words.answer(summary) == (
        f"{GOAL} is met at step 0, before any training: that tells nothing about batch sizes."
    )


def test_one_batch_size_says_nothing_of_scaling(make_summary):
    assert words.answer(make_summary(sizes=(8,))).endswith("One batch size tells nothing about scaling.")


# The critical batch size


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
    assert sentence in words.answer(with_fit(make_summary(), b_crit=b_crit, b_crit_ci=interval))


def test_few_trials_give_a_hint(make_summary):
    summary = with_fit(make_summary(num_trials=3), b_crit=104.2, b_crit_ci=Interval(98.1, 276.0))

    assert (
        "A fit puts the critical batch size at 104 (95 % interval 98.1 to 276, from minima): a hint, no more, "
        "from so few trials (3)."
    ) in words.answer(summary)


def test_a_critical_batch_size_of_minima_that_failed_to_be_confirmed_is_a_fits(make_summary):
    summary = with_fit(make_summary(seeds=6), b_crit=104.2, b_crit_ci=Interval(98.1, 276.0), estimand="minimum")
    failed = dataclasses.replace(summary.rows[1].confirmed, steps=None)
    rows = (summary.rows[0], dataclasses.replace(summary.rows[1], confirmed=failed), *summary.rows[2:])

    assert (
        "A fit puts the critical batch size at 104 (95 % interval 98.1 to 276, from minima), but batch size 2 failed "
        "to be confirmed."
    ) in words.answer(replace(summary, rows=rows, headline="minimum"))


def test_a_hyperbola_that_does_not_hold_is_named(make_summary):
    summary = with_fit(make_summary(), b_crit=104.2, b_crit_ci=Interval(98.1, 276.0))
    closer = replace(summary, regimes=dataclasses.replace(summary.regimes, source="shape"))
    summary = replace(summary, regimes=dataclasses.replace(summary.regimes, source="shape", departs=True))

    assert "describe" not in words.answer(closer)  # a closer curve is no proof
    assert "A hyperbola does not describe these steps well; fitted all the same, its critical" in words.answer(summary)


def test_a_contradicted_fit_says_so(make_summary):
    summary = with_fit(make_summary(), b_crit=104.2, b_crit_ci=Interval(98.1, 276.0), contradicted_by=(2048,))

    assert "but batch size 2,048 trained for more steps than the fit predicts without" in words.answer(summary)


def test_confirmed_medians_are_named_as_what_was_fitted(make_summary):
    assert ", from confirmed medians)." in words.answer(make_summary(seeds=6))


def test_an_exact_critical_batch_size_says_why_it_has_no_interval(make_summary):
    summary = with_fit(make_summary(num_trials=5, protocol=EXACT), b_crit=110.0)

    assert "The critical batch size is 110, without an interval: steps are exact here." in words.answer(summary)


def test_no_fit_is_said(make_summary):
    assert "The critical batch size could not be determined." in words.answer(make_summary(sizes=(1, 2)))


@pytest.mark.parametrize(
    ("b_crit", "interval", "text"),
    [
        (104.2, Interval(98.1, 276.0), "104 (98.1 to 276)"),
        (104.2, Interval(143.2, None), "> 143"),
        (None, Interval(None, None), "not bounded"),
    ],
)
def test_the_critical_batch_size_in_a_few_characters(make_summary, b_crit, interval, text):
    assert text == words.critical(with_fit(make_summary(), b_crit=b_crit, b_crit_ci=interval).fit)


def test_without_a_fit_there_is_nothing_to_show():
    assert words.critical(None) == "no fit"


# Regimes


def test_both_ends_come_with_their_range(make_summary):
    summary = with_regimes(make_summary(), (26.1, 24.5, 69.0), (417.0, 392.0, 1104.0))

    assert words.regimes(summary) == [
        "Scaling is perfect (efficiency of 80 % or more) up to batch size 26 (range 24 to 69).",
        "Beyond batch size 417 (range 392 to 1,104), larger ones save at most a fifth of the steps.",
    ]


def test_ends_beyond_what_was_tried_are_not_extrapolated(make_summary):
    summary = with_regimes(make_summary(sizes=(16, 32, 64)), (90.0, 70.0, 200.0), (900.0, 500.0, 2000.0))

    assert words.regimes(summary) == [
        "Scaling is perfect as far as it was tried, to batch size 64.",
        "Steps still fall at batch size 64, the largest that met the goal.",
    ]


def test_ends_below_what_was_tried_are_not_extrapolated(make_summary):
    summary = with_regimes(make_summary(sizes=(16, 32, 64)), (2.0, 1.0, 3.0), (9.0, 5.0, 12.0))

    assert words.regimes(summary) == [
        "Perfect scaling ends below batch size 16, the smallest that met the goal.",
        "Beyond batch size 16, the smallest, larger ones save at most a fifth of the steps.",
    ]


def test_an_open_range_makes_no_claim(make_summary):
    summary = with_regimes(make_summary(), (26.0, 24.0, None), (417.0, None, None))

    assert words.regimes(summary) == [
        "Where perfect scaling ends is not known: somewhere above 24.",
        "Where larger batch sizes stop paying is not known.",
    ]


def test_thin_data_tell_what_would_tell(make_summary):
    """The first end is known to a factor of 2.9, the second to one of 5: more than two octaves."""
    summary = with_regimes(make_summary(), (26, 24, 69), (417, 392, 1960), is_thin=True, advice="Run 99 trials.")

    assert words.regimes(summary) == [
        "Scaling is perfect (efficiency of 80 % or more) up to batch size 26 (range 24 to 69).",
        "Run 99 trials.",
    ]
    assert words.answer(summary).endswith("(range 24 to 69). Run 99 trials.")


def test_few_trials_make_no_firm_sentence(make_summary):
    summary = with_regimes(
        make_summary(num_trials=5), (26, 24, 69), (417, 392, 400), is_thin=True, advice="Run 6 or more."
    )

    assert words.regimes(summary) == ["Run 6 or more."]


def test_exact_ends_need_no_range(make_summary):
    summary = with_regimes(make_summary(num_trials=5, protocol=EXACT), (26.1, None, None), (417.0, None, None))

    assert words.regimes(summary) == [
        "Scaling is perfect (efficiency of 80 % or more) up to batch size 26.",
        "Beyond batch size 417, larger ones save at most a fifth of the steps.",
    ]


def test_the_facts_of_the_regimes_say_what_they_were_read_from(make_summary):
    summary = with_regimes(make_summary(), (26.1, 24.5, 69.0), (None, None, None))
    found = words.regime_facts(summary)

    assert [value for _, value in found[:2]] == ["26 (range 24 to 69)", "not known"]
    assert found[2][1].startswith("the fit")
    shape = with_regimes(summary, (26, 24, 69), (None, None, None), source="shape")
    assert words.regime_facts(shape)[2][1].startswith("the closest convex curve")


# The protocol


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        (
            RACE,
            "Raced: trials ended at 1.5 times the steps of the first that met the sweep's goal, so ",
        ),
        (
            RACE.model_copy(update={"race_factor": 1.0}),
            "Raced: trials ended with the first that met the sweep's goal, so ",
        ),
        (
            RACE.model_copy(update={"race_factor": None}),
            "Raced: trials ended soon after the first that met the sweep's goal, ",
        ),
        (Protocol(kind="full"), "Full protocol: every trial was trained to its budget."),
        (Protocol(kind="imported"), "Imported: these trials were not run here"),
    ],
)
def test_the_protocol_is_stated(make_summary, protocol, sentence):
    assert words.protocol(make_summary(protocol=protocol)).startswith(sentence)


def test_a_race_that_nobody_won_was_run_to_its_budget(make_summary):
    summary = make_summary(sizes=(1, 4), unreached=(1, 4), protocol=RACE.model_copy(update={"max_steps": 20_000}))

    assert words.protocol(summary) == (
        "Raced, but no trial met the goal: every trial that did not diverge was trained to its budget."
    )


def test_whether_it_was_confirmed_is_stated_where_it_could_be(make_summary):
    assert words.protocol(make_summary()).endswith(
        "Not confirmed: `batchlab confirm`, or for code of your own `run` with `sweep.confirm`, trains the best points "
        "for the sweep's goal again with fresh seeds."
    )
    assert words.protocol(make_summary(seeds=6)).endswith(
        "Confirmed: the best points were trained again with 6 fresh seeds."
    )
    for protocol in (EXACT, Protocol(kind="imported")):
        assert "onfirm" not in words.protocol(make_summary(num_trials=3, protocol=protocol))


def test_confirmed_answers_without_an_interval_say_how_many_seeds_would_give_one(make_summary):
    """Four points need seven seeds."""
    summary = make_summary(sizes=(1, 4, 16), seeds=6)
    few = tuple(replace(row, confirmed=replace(row.confirmed, points=4)) for row in summary.rows)

    assert "6 seeds of 4 points give no 95 % interval (batch size 1, 4 and 16): 7 seeds would." in (
        words.protocol(replace(summary, rows=few))
    )
    assert "no 95 % interval" not in words.protocol(summary)


def test_a_confirmation_of_another_goal_or_of_more_trials_is_told(make_summary):
    summary = make_summary(sizes=(1, 4, 16))

    def told(goal):
        rows = tuple(replace(row, confirmed_goal=Goal.read(goal)) for row in summary.rows)
        return words.protocol(replace(summary, rows=rows))

    other = "val/classification_error < 0.02"
    assert told(other).endswith(f"Not confirmed: fresh seeds were trained to {other}, not to this goal.")
    assert told(GOAL).endswith(
        "Not confirmed at batch size 1, 4 and 16: the points that were trained again are not among these trials."
    )


# Facts


def test_fit_details_name_what_was_fitted_and_what_contradicts_it(make_summary):
    summary = with_fit(make_summary(unreached=(1, 2)), contradicted_by=(2,), censored=(1, 2))
    found = dict(words.fit_facts(summary.fit))

    assert found["Fitted to"] == "minima"
    late = dict(words.fit_facts(replace(summary.fit, lateness=1.05)))["Fitted to"]
    assert late == "minima, each in the middle of the gap before its evaluation, 5 % earlier"
    assert " to " in found["95 % interval"]
    assert found["Largest deviation from the curve"].endswith(" %")
    assert "AIC" in found["Alternative S_min + (E_min / B)^a"]
    assert found["Not reached, so a lower bound only"] == "batch size 1 and 2"
    assert found["Trained for more steps than the fit predicts"] == "batch size 2"


def test_exact_steps_have_no_interval_in_the_details(make_summary):
    found = dict(words.fit_facts(make_summary(num_trials=5, protocol=EXACT).fit))

    assert found["95 % interval"] == "none: steps are exact here"
    assert "Trained for more steps than the fit predicts" not in found


def test_what_the_race_saved_is_told_against_the_full_protocol_and_of_a_race_alone():
    cost = {"trained_steps": 12_000, "full_steps": 48_000, "protocol": "race"}

    assert words.training_cost(cost) == (
        "The search trained 12,000 steps, where every trial to its budget would be 48,000 (4 times)."
    )
    assert "(1,000 times)" in words.training_cost({**cost, "full_steps": 12_000_000})
    assert words.training_cost({**cost, "protocol": "full"}) == "The search trained 12,000 steps."
    assert words.training_cost({"trained_steps": 12_000}) == "The search trained 12,000 steps."
    assert words.training_cost({**cost, "confirming_steps": 900}).endswith(
        "; confirming the best points took 900 more."
    )
    assert words.training_cost({"protocol": "full"}) is None


def test_nested_values_are_named_by_their_place():
    assert words.facts({"a": [1, 2], "b": {"c": {"d": "x"}}}) == [("a", "1, 2"), ("b.c.d", "x")]


def test_a_batch_size_whose_fresh_seeds_missed_the_goal_is_named(make_summary):
    summary = make_summary(sizes=(1, 4, 16), seeds=6)
    missed = replace(summary.rows[1].confirmed, steps=None, end_step=900)
    rows = (summary.rows[0], replace(summary.rows[1], confirmed=missed), summary.rows[2])

    assert (
        "Not confirmed at batch size 4: half or more of the runs with fresh seeds missed the goal within 900 steps."
        in words.protocol(replace(summary, rows=rows, headline="best_of"))
    )


def test_exact_steps_that_no_hyperbola_describes_are_told_as_such(make_summary):
    summary = make_summary(protocol=Protocol(kind="full", is_closed_form=True))
    regimes = dataclasses.replace(summary.regimes, source="shape", departs=True)
    shape = dataclasses.replace(summary, regimes=regimes)

    assert "The critical batch size is " in words.answer(summary)
    assert "A hyperbola does not describe these steps well; fitted all the same, its critical" in words.answer(shape)


def test_a_batch_size_of_which_nothing_was_trained_again_is_told_as_such(make_summary):
    summary = make_summary(sizes=(1, 4, 16), seeds=6)
    *rows, last = summary.rows
    rows = [dataclasses.replace(row, confirmed_goal=summary.goal) for row in rows]
    never = dataclasses.replace(last, confirmed=None, confirmed_goal=None)
    found = dataclasses.replace(summary, rows=(*rows, never), headline="best_of")

    assert words.confirmation(found) == "Not confirmed at batch size 16: no point was trained again there."


def test_trials_that_ended_by_themselves_are_told(make_summary):
    summary = make_summary(protocol=Protocol(kind="full"))

    assert words.protocol(summary).startswith("Full protocol: every trial was trained to its budget. ")
    assert words.protocol(with_best(summary, ended_alone=True)).startswith(
        "Full protocol: every trial was trained to its budget, or ended by itself before. "
    )


def test_one_lucky_start_does_not_hide_the_answer(make_summary):
    summary = with_best(make_summary(sizes=(1, 4, 16)), steps=0, best_of=BestOf(6, 205.0, Interval(190, None)))

    assert "are 205 at batch size 16" in words.answer(summary)


def test_the_overview_withholds_the_interval_that_the_answer_withholds(make_summary):
    summary = make_summary(sizes=(1, 4, 16), seeds=6)

    assert " to " not in best_text(summary)
    assert " to " in best_text(make_summary(sizes=(16,), seeds=6))
