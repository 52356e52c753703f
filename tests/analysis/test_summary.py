from __future__ import annotations

import json
from dataclasses import replace

import pytest

from batchlab.analysis import curve_json, summarise
from batchlab.core.confirmation import Confirmation, Replicate
from batchlab.core.goal import Goal
from batchlab.core.protocol import Protocol
from batchlab.core.trial import Status
from batchlab.errors import InputError

GOAL = Goal.read("val/loss < 1.0")


def falling(first_step: int, num_evals: int = 60) -> list[float]:
    """A curve that meets the goal at `first_step`, a multiple of ten."""
    return [3.0] * (first_step // 10) + [0.5] * (num_evals - first_step // 10)


@pytest.fixture
def results(make_result):
    return [
        make_result([falling(120), falling(130)], batch_size=8),
        make_result([falling(500), falling(510), [0.1]], {2: Status.INFEASIBLE}, batch_size=1),
        make_result([[3.0] * 60, [3.0] * 60], batch_size=16),
        make_result([falling(260), falling(300)], batch_size=2, learning_rate=10.0),
    ]


def test_rows_ascend_in_batch_size_and_carry_regimes_fit_and_tuning(results):
    summary = summarise(results, GOAL)

    assert summary.workload == "digits/fc_128/sgd"
    assert [row.batch_size for row in summary.rows] == [1, 2, 8, 16]
    assert [row.steps for row in summary.rows] == [500, 260, 120, None]
    assert len(summary.regimes.efficiencies) == 4
    assert (summary.headline, summary.is_confirmed, summary.protocol.kind) == ("minimum", False, "full")
    assert summary.fit.batch_sizes == (1, 2, 8)
    assert [point.batch_size for point in summary.tuned] == [1, 2, 8]
    assert summary.best.batch_size == 8


def test_warnings_tell_of_fit_and_edges(results):
    warnings = " ".join(summarise(results, GOAL).warnings)

    assert "Batch size 16 trained for more steps than the fitted curve predicts" in warnings
    assert "At batch size 16 the goal was not reached within the budget of " in warnings
    assert "Stuck at chance, though not diverged: 2 of 2 complete trials at batch size 16." in warnings
    assert "At batch size 1, 2 and 8 the best point lies at the edge of what was tried of learning_rate" in warnings
    assert "Budgets differ" not in warnings


def test_trials_that_are_stuck_everywhere_are_told_without_a_list(make_result):
    results = [make_result([falling(50), [3.0] * 60], batch_size=size) for size in (1, 2, 4)]

    (stuck,) = [warning for warning in summarise(results, GOAL).warnings if "Stuck" in warning]

    assert stuck == "Stuck at chance, though not diverged: 3 of 6 complete trials at every batch size."


def test_unequal_budgets_are_told_unless_the_first_trials_even_them(make_result):
    results = [make_result([falling(50)] * n, batch_size=n) for n in (2, 3)]

    assert any("from 2 to 3 complete trials" in warning for warning in summarise(results, GOAL).warnings)
    assert not any("Budgets differ" in warning for warning in summarise(results, GOAL, num_trials=2).warnings)


def test_json_has_exactly_the_promised_shape(results):
    found = curve_json(summarise(results, GOAL))

    assert found["rows"][0] == {
        "batch_size": 1,
        "reached": True,
        "steps": 500,
        "trial_id": 0,
        "metaparameters": {"learning_rate": 0.1},
        "complete": 2,
        "infeasible": 1,
        "incomplete": 0,
        "stuck": 0,
        "at_boundary": ["learning_rate"],
        "best_of": None,
        "confirmed": None,
    }
    assert found["rows"][3] == {
        "batch_size": 16,
        "reached": False,
        "steps": None,
        "trial_id": None,
        "metaparameters": None,
        "complete": 2,
        "infeasible": 0,
        "incomplete": 0,
        "stuck": 2,
        "at_boundary": [],
        "best_of": None,
        "confirmed": None,
    }
    assert list(found) == ["workload", "goal", "headline", "protocol", "rows", "fit", "regimes"]
    assert list(found["fit"]) == ["s_min", "e_min", "b_crit", "b_crit_ci", "contradicted_by", "warning"]
    assert found["protocol"] == {"kind": "full", "race_factor": None, "confirmed": False}
    assert list(found["regimes"]) == ["from", "perfect_up_to", "maximal_from"]
    assert list(found["regimes"]["maximal_from"]) == ["value", "range"]
    assert found["goal"] == "val/loss < 1"
    assert found == json.loads(json.dumps(found, allow_nan=False))


def test_json_of_a_censored_bound_is_null_within_the_pair(make_result):
    result = make_result([falling(50), *[[3.0] * 60] * 9])

    assert curve_json(summarise([result], GOAL))["rows"][0]["best_of"] == {"m": 1, "steps": None, "ci": [50, None]}


def test_json_of_a_confirmed_answer(make_result):
    replicates = [Replicate(trial_id=0, replicate=k, goal_step=10 * k, last_step=10 * k) for k in range(1, 7)]
    confirmation = Confirmation(goal=GOAL, seeds=6, trial_ids=(0,), end_step=200, replicates=tuple(replicates))
    protocol = Protocol(kind="race", race_factor=1.5, max_steps=590)
    found = curve_json(summarise([make_result([falling(50)], protocol=protocol, confirmation=confirmation)], GOAL))

    assert found["headline"] == "confirmed"
    assert found["protocol"] == {"kind": "race", "race_factor": 1.5, "confirmed": True}
    assert found["rows"][0]["confirmed"] == {
        "steps": 35.0,
        "ci": [10, 60],
        "seeds": 6,
        "metaparameters": {"learning_rate": 0.1},
    }


def test_a_goal_met_before_training_asks_about_units(make_result):
    (warning, *_) = summarise([make_result([[0.5, 0.4]])], GOAL).warnings

    assert warning == (
        "At batch size 8 the goal was met at step 0, before any training: is val/loss < 1 in the units of the metric "
        "(3 % is 0.03), and is it the right way round?"
    )


def test_a_race_that_ended_early_is_no_spent_budget(make_result):
    protocol = Protocol(kind="race", race_factor=1.5, max_steps=1000)
    warnings = " ".join(summarise([make_result([[3.0, 2.0]], protocol=protocol)], GOAL).warnings)

    assert "At batch size 8 the goal was not reached before the race ended at step " in warnings


def test_the_protocol_keeps_what_all_studies_share(make_result):
    protocols = [Protocol(kind="race", race_factor=factor, max_steps=590) for factor in (1.5, 1.2)]
    results = [make_result([falling(50)], batch_size=k, protocol=one) for k, one in enumerate(protocols, 1)]

    assert summarise(results, GOAL).protocol == Protocol(kind="race", race_factor=None, max_steps=590)


def test_json_without_a_fit_says_null(make_result):
    summary = summarise([make_result([falling(50)])], GOAL)

    assert curve_json(summary)["fit"] is None
    assert (
        summary.warnings[0]
        == "The critical batch size needs 3 batch sizes that reach the goal by training; 1 of 1 did."
    )


def test_no_study_several_workloads_and_repeated_batch_sizes_are_refused(make_result):
    with pytest.raises(InputError, match="no study"):
        summarise([], GOAL)
    with pytest.raises(InputError, match="several workloads cannot share a curve: a/b/c, d/e/f"):
        summarise([make_result([[3]], workload=name) for name in ("d/e/f", "a/b/c")], GOAL)
    with pytest.raises(InputError, match="have batch size 8"):
        summarise([make_result([[3]]), make_result([[3]])], GOAL)


def test_importing_the_analysis_brings_in_neither_scipy_nor_drawing_nor_training():
    import subprocess
    import sys

    program = "import sys, batchlab.analysis; print(sorted({'scipy', 'matplotlib', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_batch_size_at_which_all_trials_diverged_tells_nothing_of_steps(results, make_result):
    diverged = make_result([[3.0]] * 2, {0: Status.INFEASIBLE, 1: Status.INFEASIBLE}, batch_size=64, end_step=590)
    without, found = summarise(results[:2] + results[3:], GOAL), summarise([*results[:2], *results[3:], diverged], GOAL)

    assert found.rows[-1].ended_by == "divergence"
    assert (found.fit.b_crit, found.fit.censored) == (without.fit.b_crit, ())
    assert "At batch size 64 no trial completed: nothing is known of its steps." in found.warnings


def test_no_curve_is_fitted_where_the_batch_size_changes_on_the_way(make_result):
    """The examples of each study are four times its steps, whatever the first batch size is."""
    results = [make_result([falling(first)] * 2, batch_size=size) for first, size in ((500, 1), (260, 2), (120, 8))]
    grown = [
        replace(each, measurements=replace(each.measurements, examples=4 * each.measurements.step)) for each in results
    ]
    summary = summarise(grown, GOAL)

    assert summarise(results, GOAL).fit is not None
    assert (summary.fit, summary.regimes) == (None, None)
    assert "The batch size changes on the way" in summary.warnings[0]
