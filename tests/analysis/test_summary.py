from __future__ import annotations

import json

import pytest

from batchlab.analysis import curve_json, summarise
from batchlab.core.goal import Goal
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


def test_rows_ascend_in_batch_size_and_carry_scaling_fit_and_tuning(results):
    summary = summarise(results, GOAL)

    assert summary.workload == "digits/fc_128/sgd"
    assert [row.batch_size for row in summary.rows] == [1, 2, 8, 16]
    assert [row.steps for row in summary.rows] == [500, 260, 120, None]
    assert pytest.approx(summary.scaling.efficiencies) == [1.0, 500 / 520, 500 / 960, None]
    assert summary.fit.batch_sizes == (1, 2, 8)
    assert [point.batch_size for point in summary.tuned] == [1, 2, 8]
    assert summary.best.batch_size == 8


def test_warnings_tell_of_fit_and_edges(results):
    warnings = " ".join(summarise(results, GOAL).warnings)

    assert "Not reached, so not fitted: batch size 16." in warnings
    assert "At batch size 2 the best point lies at the edge of the search range of learning_rate" in warnings
    assert "Budgets differ" not in warnings


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
        "at_boundary": [],
        "ci": [500, 510],
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
        "at_boundary": [],
        "ci": None,
    }
    assert list(found) == ["workload", "goal", "rows", "fit"]
    assert list(found["fit"]) == ["s_min", "e_min", "b_crit", "b_crit_ci", "warning"]
    assert found["goal"] == "val/loss < 1"
    assert found == json.loads(json.dumps(found, allow_nan=False))


def test_json_of_a_censored_bound_is_null_within_the_pair(make_result):
    result = make_result([falling(50), *[[3.0] * 60] * 9])

    assert curve_json(summarise([result], GOAL))["rows"][0]["ci"] == [50, None]


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
