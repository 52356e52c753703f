"""The noisy quadratic model through the command line, against exact steps worked out apart from this code."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from batchlab.store.query import connect

BATCH_SIZES = [1, 4, 16, 64, 256, 1024, 4096]

# First step with risk <= 0.05 by learning rate and batch size; None is the table's dash: never.
FIRST_STEPS = {
    0.03: [4337, 2756, 2568, 2526, 2516, 2513, 2513],
    0.1: [None, 1133, 814, 768, 757, 755, 754],
    0.3: [None, None, 334, 266, 255, 252, 251],
    1.0: [None, None, None, 100, 80, 76, 76],
    1.8: [None, None, None, None, 56, 44, 42],
}

# The best constant learning rate of a 1,500-point geometric grid from 1e-4 to 1.999, and the fit to these steps.
TUNED_STEPS = [4335, 1099, 292, 95, 54, 44, 41]
TUNED_RATES = ["0.0295", "0.115", "0.412", "1.163", "1.63", "1.80", "1.85"]


def stored_first_steps(lab: Path) -> dict[float, list[int | None]]:
    """Return the first stored step that met the goal, by learning rate and batch size."""
    with connect(lab) as connection:
        rows = connection.execute(
            """
            select batch_size, trial_id, min(step) filter ("val/risk" <= 0.05)
            from measurements where sweep = 'grid' group by all
            """
        ).fetchall()
    found = {(batch_size, trial_id): step for batch_size, trial_id, step in rows}
    return {
        rate: [found[batch_size, trial_id] for batch_size in BATCH_SIZES] for trial_id, rate in enumerate(FIRST_STEPS)
    }


def test_every_stored_curve_meets_the_goal_at_the_exact_step(full_lab_once):
    assert stored_first_steps(full_lab_once) == FIRST_STEPS


def test_the_full_protocol_stores_every_step_of_every_trial(full_lab_once):
    for batch_size in BATCH_SIZES:
        path = full_lab_once / "sweeps" / "grid" / str(batch_size) / "measurements.parquet"
        counts = duckdb.sql(f"select trial_id, count(*), min(step), max(step) from '{path}' group by all").fetchall()

        assert sorted(counts) == [(trial_id, 5001, 0, 5000) for trial_id in range(5)]


def test_the_curve_is_the_column_minima_of_the_table(call, full_lab_once):
    curve = json.loads(call("curve", "--lab", full_lab_once, "--json").out)

    assert list(curve) == ["workload", "goal", "headline", "protocol", "rows", "fit", "regimes"]
    assert (curve["workload"], curve["goal"]) == ("nqm/quadratic/sgd", "val/risk <= 0.05")
    assert [row["batch_size"] for row in curve["rows"]] == BATCH_SIZES
    for column, row in enumerate(curve["rows"]):
        steps, rate = min((steps[column], rate) for rate, steps in FIRST_STEPS.items() if steps[column] is not None)
        del row["stuck"]  # large learning rates at small batch sizes: the noise keeps the risk where it began

        assert row == {
            "batch_size": BATCH_SIZES[column],
            "reached": True,
            "steps": steps,
            "trial_id": list(FIRST_STEPS).index(rate),
            "metaparameters": {"learning_rate": rate},
            "complete": 5,
            "infeasible": 0,
            "incomplete": 0,
            "best_of": None,
            "confirmed": None,
            "at_boundary": [],
        }
    assert list(curve["fit"]) == ["s_min", "e_min", "b_crit", "b_crit_ci", "contradicted_by", "warning"]


def test_another_goal_is_answered_from_the_same_curves(call, full_lab_once):
    """risk(t) at B = 4, learning rate 0.3 falls below 1 before the others do; a goal of 3 is met at the start."""
    easy = json.loads(call("curve", "--lab", full_lab_once, "--goal", "val/risk < 3", "--json").out)
    harder = json.loads(call("curve", "--lab", full_lab_once, "--goal", "val/risk <= 1e-9", "--json").out)

    assert easy["goal"] == "val/risk < 3"
    assert [(row["reached"], row["steps"]) for row in easy["rows"]] == [(True, 0)] * 7
    assert [(row["reached"], row["steps"], row["trial_id"]) for row in harder["rows"]] == [(False, None, None)] * 7
    assert easy["fit"] is harder["fit"] is None


def test_the_first_trials_alone_can_be_asked_for(call, full_lab_once):
    """With the learning rates 0.03 and 0.1 alone the table's first two rows decide."""
    rows = json.loads(call("curve", "--lab", full_lab_once, "--trials", 2, "--json").out)["rows"]

    assert [row["steps"] for row in rows] == [4337, 1133, 814, 768, 757, 755, 754]


def test_the_race_has_the_same_answer_as_the_full_protocol(call, full_lab_once, grid_lab_once):
    full, race = (
        json.loads(call("curve", "--lab", lab, "--json").out)["rows"] for lab in (full_lab_once, grid_lab_once)
    )
    decided = ("batch_size", "reached", "steps", "trial_id", "metaparameters")

    assert [[row[key] for key in decided] for row in race] == [[row[key] for key in decided] for row in full]


def test_the_race_trains_the_others_to_one_and_a_half_times_the_winner(grid_lab_once):
    """For B = 16 the winner takes 334 steps, so all five stop at 501."""
    path = grid_lab_once / "sweeps" / "grid" / "16" / "measurements.parquet"

    assert duckdb.sql(f"select distinct max(step) over (partition by trial_id) from '{path}'").fetchall() == [(501,)]


@pytest.mark.slow  # about a minute: 1,500 trials at each of seven batch sizes
def test_the_finest_grid_gives_the_tuned_steps_and_the_fit(call, grid_spec):
    grid = '{min = 1e-4, max = 1.999, scale = "log", points = 1500}'
    settings = ("sweep.trials=1500", "sweep.race_factor=1.0", f"search_space.learning_rate={grid}")
    answer = call("run", grid_spec, "--json", *(part for setting in settings for part in ("--set", setting)))
    curve = json.loads(answer.out)
    rates = [row["metaparameters"]["learning_rate"] for row in curve["rows"]]

    assert [row["steps"] for row in curve["rows"]] == TUNED_STEPS
    assert [
        f"{rate:.{len(text.partition('.')[2])}f}" for rate, text in zip(rates, TUNED_RATES, strict=True)
    ] == TUNED_RATES
    assert round(curve["fit"]["s_min"], 1) == 39.0
    assert round(curve["fit"]["e_min"]) == 4119
    assert round(curve["fit"]["b_crit"]) == 106
