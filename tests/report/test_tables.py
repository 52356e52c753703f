from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from batchlab.analysis import BestOf, Interval, TunedPoint
from batchlab.analysis.curve.regimes import Efficiency
from batchlab.core.goal import Goal
from batchlab.core.protocol import Protocol
from batchlab.report.tables import (
    best_text,
    format_efficiency,
    format_interval,
    format_steps,
    format_tuned,
    format_value,
    headline_name,
    parts_of,
    published_beside,
    steps_table,
    text_of,
)

RACE = Protocol(kind="race", race_factor=1.5, max_steps=50_000)


def column(table, name):
    """Return the cells of one column."""
    return [row[list(table.header).index(name)] for row in table.rows]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"seeds": 6}, "Confirmed"),
        ({}, "Best of 6"),
        ({"num_trials": 12}, "Best of 2"),
        ({"num_trials": 3}, "Minimum"),
        ({"protocol": Protocol(kind="imported")}, "Minimum"),
    ],
)
def test_the_best_answer_stands_first_under_its_name(make_summary, options, expected):
    summary = make_summary(**options)

    assert expected == headline_name(summary) == steps_table(summary).header[1]


def test_different_numbers_of_trials_make_different_m(make_summary):
    summary = make_summary(sizes=(1, 2, 4))
    fewer = dataclasses.replace(summary.rows[0], best_of=BestOf(2, 4000.0, Interval(3000, 5000)))

    assert headline_name(dataclasses.replace(summary, rows=(fewer, *summary.rows[1:]))) == "Best of 2 to 6"


def test_the_minimum_stays_beside_a_better_answer_and_is_not_told_twice(make_summary):
    summary = make_summary(seeds=6)

    assert column(steps_table(summary), "Minimum") == [f"{row.steps:,}" for row in summary.rows]
    assert list(steps_table(make_summary(num_trials=3)).header).count("Minimum") == 1


def test_what_is_confirmed_here_and_failed_there_stands_beside_the_minimum(make_summary):
    summary = make_summary(sizes=(1, 2, 4), seeds=6, num_trials=3)
    first, second, third = summary.rows
    failed = dataclasses.replace(second.confirmed, steps=None, interval=Interval(900, None), end_step=4000)
    rows = (first, dataclasses.replace(second, confirmed=failed), dataclasses.replace(third, confirmed=None))
    table = steps_table(dataclasses.replace(summary, rows=rows, headline="minimum"))

    assert column(table, "Minimum") == [f"{row.steps:,}" for row in rows]
    assert column(table, "Confirmed") == [format_steps(first.confirmed.steps), "failed", ""]
    assert column(table, "its 95 %")[1:] == ["900 to > 4,000", ""]
    assert "its 95 %" not in steps_table(summary).header


def test_fewer_than_six_trials_show_no_regime(make_summary):
    assert "Regime" in steps_table(make_summary(num_trials=8)).header
    assert "Regime" not in steps_table(make_summary(num_trials=3)).header


def test_a_goal_met_at_step_0_is_in_no_regime(make_summary):
    summary = make_summary()
    first, *others = summary.rows
    table = steps_table(dataclasses.replace(summary, rows=(dataclasses.replace(first, steps=0), *others)))

    assert column(table, "Regime")[:2] == ["", "perfect"]


def test_steps_have_their_thousands_separated_and_halves_shown():
    assert [format_steps(steps) for steps in (1234, 1234.0, 205.5)] == ["1,234", "1,234", "205.5"]


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (Interval(1234, 1390), "1,234 to 1,390"),
        (Interval(1234, None), "1,234 to > 1,851"),
        (Interval(None, None), ""),
    ],
)
def test_intervals_show_an_open_bound_as_open(make_summary, interval, expected):
    summary = make_summary(sizes=(1,))
    row = dataclasses.replace(summary.rows[0], best_of=BestOf(6, 1300.0, interval), end_step=1851)

    assert expected == format_interval(row, summary)


def test_an_interval_has_no_bound_where_the_others_were_not_measured_as_far(make_summary):
    """A loop of one's own may have reported nothing of the goal before its race ended."""
    summary = make_summary(sizes=(1,))
    row = dataclasses.replace(summary.rows[0], best_of=BestOf(1, 12.0, Interval(12, None)), end_step=0)

    assert format_interval(row, summary) == "12 to no bound"


def test_a_confirmed_interval_is_open_beyond_where_its_replicates_ended(make_summary):
    summary = make_summary(sizes=(1,), seeds=6)
    (row,) = summary.rows
    confirmed = dataclasses.replace(row.confirmed, interval=Interval(190, None), end_step=800)

    assert format_interval(dataclasses.replace(row, confirmed=confirmed), summary) == "190 to > 800"


def test_a_minimum_has_no_interval(make_summary):
    assert "95 % interval" not in steps_table(make_summary(num_trials=3)).header


def test_what_was_not_reached_tells_what_ended_training(make_summary):
    """Trained to 20,000 steps: that is the budget of the full protocol and the end of a race with a larger one."""
    full = steps_table(make_summary(sizes=(1, 4, 16), unreached=(16,)))
    race = steps_table(make_summary(sizes=(1, 4, 16), unreached=(16,), protocol=RACE))

    assert full.rows[2][:3] == ("16", "not reached", "> 20,000, budget")
    assert race.rows[2][:3] == ("16", "not reached", "> 20,000, race")
    assert full.muted == [2]


@pytest.mark.parametrize(
    ("efficiency", "expected"),
    [
        (Efficiency(0.83, 0.7, 0.95), "83 (70 to 95)"),
        (Efficiency(0.83, 0.7, None), "> 70"),
        (Efficiency(0.83, None, 0.95), "< 95"),
        (Efficiency(0.83, None, None), "not known"),
        (None, ""),
    ],
)
def test_an_efficiency_never_stands_without_its_range(efficiency, expected):
    assert expected == format_efficiency(efficiency)


def test_an_exact_efficiency_needs_no_range():
    assert format_efficiency(Efficiency(0.83, None, None), is_exact=True) == "83"


def test_a_regime_that_the_ranges_leave_open_is_not_claimed(make_summary):
    """Ranges of 20 to 40 and 300 to 600 leave batch sizes 32 and 512 open."""
    summary = make_summary()
    perfect = dataclasses.replace(summary.regimes.perfect_up_to, low=20, high=40)
    maximal = dataclasses.replace(summary.regimes.maximal_from, low=300, high=600)
    regimes = dataclasses.replace(summary.regimes, perfect_up_to=perfect, maximal_from=maximal)
    cells = column(steps_table(dataclasses.replace(summary, regimes=regimes)), "Regime")

    assert dict(zip([row.batch_size for row in summary.rows], cells, strict=True)) == {
        **dict.fromkeys((1, 2, 4, 8, 16), "perfect"),
        **dict.fromkeys((32, 512), "not known"),
        **dict.fromkeys((64, 128, 256), "diminishing"),
        **dict.fromkeys((1024, 2048), "maximal"),
    }


def test_stuck_trials_are_counted_apart_from_diverged_ones(make_summary):
    table = steps_table(make_summary(sizes=(1, 4), stuck=4))

    assert (column(table, "Infeasible"), column(table, "Stuck")) == (["3", "3"], ["4", "4"])


def test_columns_without_anything_to_tell_are_left_out(make_summary):
    table = steps_table(make_summary(sizes=(1, 4)))

    assert not {"Stuck", "At the edge", "Published", "Ratio", "Efficiency %"} & set(table.header)
    assert {"Complete", "Infeasible"} <= set(table.header)


def test_published_steps_stand_beside_with_the_ratio_of_the_headline(make_summary):
    """The paper's Figure 1: 2,300 steps at batch size 32. 2,530 / 2,300 = 1.10; it has no batch size 48."""
    cnn = make_summary(sizes=(32, 48), num_trials=3, workload="mnist/simple_cnn_base/nesterov_momentum")
    row = dataclasses.replace(cnn.rows[0], steps=2530)
    goal = Goal.read("val/classification_error < 0.01")
    summary = dataclasses.replace(cnn, rows=(row, cnn.rows[1]), goal=goal)
    table = steps_table(summary, published_beside(summary))

    assert column(table, "Published") == ["2,300", ""]
    assert column(table, "Ratio") == ["1.10", ""]


def test_another_workload_has_no_published_steps(make_summary):
    assert published_beside(make_summary()) is None


def test_best_metaparameters_come_with_their_region():
    top = ({"learning_rate": 0.06, "momentum": 0.9}, {"learning_rate": 0.2, "momentum": 0.97})
    point = TunedPoint(64, {"learning_rate": 0.12, "momentum": 0.95}, (), top)

    assert format_tuned(point) == "learning_rate 0.12 (0.06 to 0.2), momentum 0.95 (0.9 to 0.97), top 2"


def test_defaults_do_not_crowd_the_best_metaparameters():
    metaparameters = {"learning_rate": 0.01, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0}
    point = TunedPoint(64, metaparameters, (), (metaparameters,) * 3, searched=("weight_decay", "learning_rate"))

    assert format_tuned(point) == "learning_rate 0.01, weight_decay 0, top 3"


def test_metaparameters_without_a_region_stand_alone():
    assert format_tuned(TunedPoint(64, {"b": 2.0, "a": 1.0}, ())) == "b 2, a 1"


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
    assert expected == format_value(value)


def test_the_fewest_steps_in_a_few_words(make_summary):
    summary = make_summary(sizes=(8,))
    row = dataclasses.replace(summary.rows[0], best_of=BestOf(6, 573.0, Interval(554, 723)))

    assert best_text(dataclasses.replace(summary, rows=(row,))) == "573 (554 to 723) at batch size 8, best of 6"
    assert best_text(make_summary(sizes=(8,), unreached=(8,))) == "not reached"


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("options", [{}, {"seeds": 6, "stuck": 2, "at_boundary": ("momentum",)}, {"num_trials": 3}])
def test_a_terminal_holds_the_table_with_every_number_whole(make_summary, width, options):
    table = steps_table(make_summary(unreached=(1,), **options))
    text = text_of(table, width)

    assert max(len(line) for line in text.splitlines()) <= width
    words = text.split()
    for cell in [cell for row in table.rows for cell in row]:
        assert set(cell.split()) <= set(words)


def test_at_80_columns_all_answers_stand_in_one_block(make_summary):
    first = text_of(steps_table(make_summary(unreached=(1,), seeds=6)), 80).splitlines()[0]

    assert first.split("  ")[-1] == "Regime"


def test_a_page_shows_the_table_in_parts_that_open_with_the_batch_size(make_summary):
    parts = parts_of(steps_table(make_summary(sizes=(1, 4), stuck=1)))

    assert [part.header[0] for part in parts] == ["Batch size"] * 3
    assert [part.header[-1] for part in parts] == ["Minimum", "Stuck", "Best metaparameters"]
    assert [list(part.numbers)[-1] for part in parts] == [3, 4, 0]


def test_tables_do_not_bring_in_drawing():
    program = "import sys, batchlab.report.tables; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_a_part_of_a_dataset_is_not_held_against_what_was_published_of_all_of_it(make_summary):
    summary = make_summary(workload="mnist/simple_cnn_base/nesterov_momentum", sizes=(32, 128))
    summary = dataclasses.replace(summary, goal=Goal.read("val/classification_error < 0.01"))

    assert published_beside(summary) is not None
    assert published_beside(dataclasses.replace(summary, has_whole_data=False)) is None


def test_minima_stand_beside_the_ratio_of_what_is_no_minimum(make_summary):
    summary = make_summary(workload="mnist/simple_cnn_base/nesterov_momentum", sizes=(32, 128), seeds=6)
    summary = dataclasses.replace(summary, goal=Goal.read("val/classification_error < 0.01"))
    published = published_beside(summary)

    minima = dataclasses.replace(summary, headline="minimum")

    assert published.minimum_ratios == published_beside(minima).ratios
    assert "Of minima" in steps_table(summary, published).header
    assert "Of minima" not in steps_table(minima, published_beside(minima)).header


def test_the_overview_withholds_the_interval_that_the_answer_withholds(make_summary):
    summary = make_summary(sizes=(1, 4, 16), seeds=6)

    assert " to " not in best_text(summary)
    assert " to " in best_text(make_summary(sizes=(16,), seeds=6))
