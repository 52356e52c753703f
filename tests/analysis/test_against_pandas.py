"""Our answers equal those of a slow, obvious version in pandas that works as the authors' code does:

sort by step, then by trial id; compare strictly; take the first row; groups without a row vanish.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchlab.analysis import (
    apply_example_budget,
    apply_step_budget,
    best_measurement,
    count_stuck,
    first_complete_trials,
    group_trials,
    steps_to_result,
)
from batchlab.core.goal import Goal
from batchlab.core.measurement import Curve, Measurements
from batchlab.core.result import StudyResult
from batchlab.core.space import SearchSpace
from batchlab.core.trial import Status, Trial
from batchlab.errors import InputError

METRIC = "val/error"
LOWER, HIGHER = Goal.read(f"{METRIC} < 0.3"), Goal.read(f"{METRIC} > 0.3")

# Few different values and steps, so that ties are common; the threshold itself is among them.
values = st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5])
later_values = values | st.just(float("nan"))


@st.composite
def trials_and_curves(draw, trial_id: int) -> tuple[Trial, Curve]:
    steps = [0, *sorted(draw(st.sets(st.integers(1, 12), max_size=5)))]
    # Step 0 always has a value: a study without any would be refused.
    curve = [draw(values), *draw(st.lists(later_values, min_size=len(steps) - 1, max_size=len(steps) - 1))]
    metaparameters = draw(st.sampled_from([{}, {"label_smoothing": 0.0}, {"label_smoothing": 0.1}]))
    status = draw(st.sampled_from([Status.COMPLETE, Status.COMPLETE, Status.INFEASIBLE, Status.INCOMPLETE]))
    trial = Trial(trial_id=trial_id, status=status, metaparameters=metaparameters, last_step=steps[-1])
    return trial, Curve(trial_id, np.array(steps), {METRIC: np.array(curve)})


@st.composite
def studies(draw, batch_size: int) -> StudyResult:
    ids = sorted(draw(st.sets(st.integers(0, 20), min_size=1, max_size=6)))
    pairs = [draw(trials_and_curves(trial_id)) for trial_id in ids]
    end_step = draw(st.integers(0, 12))
    measurements = Measurements.of([curve for _, curve in pairs])
    return StudyResult("a/b/c", batch_size, tuple(trial for trial, _ in pairs), measurements, SearchSpace({}), end_step)


@st.composite
def workloads(draw) -> list[StudyResult]:
    sizes = sorted(draw(st.sets(st.sampled_from([1, 2, 3, 8, 55]), min_size=1, max_size=4)))
    return [draw(studies(size)) for size in sizes]


def load(studies: list[StudyResult], num_trials: int | None = None) -> pd.DataFrame:
    """The complete trials of all studies as one table, indexed by batch size, trial and step."""
    frames = []
    for study in studies:
        complete = [trial for trial in study.trials if trial.status == "COMPLETE"][:num_trials]
        for trial in complete:
            rows = study.measurements.trial_id == trial.trial_id
            frames.append(
                pd.DataFrame(
                    {
                        "batch_size": study.batch_size,
                        "trial_id": trial.trial_id,
                        "step": study.measurements.step[rows],
                        METRIC: study.measurements.metrics[METRIC][rows],
                        "label_smoothing": trial.metaparameters.get("label_smoothing", 0.0),
                    }
                )
            )
    if not frames:
        return pd.DataFrame({"batch_size": [], "trial_id": [], "step": [], METRIC: [], "label_smoothing": []})
    return pd.concat(frames, ignore_index=True)


def slow_steps_to_result(table: pd.DataFrame, goal: Goal) -> dict[int, tuple[int, int]]:
    """Batch size -> (step, trial id) of the first row strictly beyond the threshold."""
    found = {}
    for batch_size, group in table.groupby("batch_size"):
        ordered = group.sort_values(["step", "trial_id"])
        is_good = ordered[METRIC] < goal.threshold if goal.is_lower_better else ordered[METRIC] > goal.threshold
        good = ordered[is_good]
        if not good.empty:
            found[int(batch_size)] = (int(good.iloc[0]["step"]), int(good.iloc[0]["trial_id"]))
    return found


def slow_best(table: pd.DataFrame, goal: Goal) -> dict[int, tuple[float, int, int]]:
    """Batch size -> (value, step, trial id) of the best row; ties by step, then by trial id."""
    found = {}
    for batch_size, group in table.dropna(subset=[METRIC]).groupby("batch_size"):
        ordered = group.sort_values([METRIC, "step", "trial_id"], ascending=[goal.is_lower_better, True, True])
        first = ordered.iloc[0]
        found[int(batch_size)] = (float(first[METRIC]), int(first["step"]), int(first["trial_id"]))
    return found


def slow_stuck(study: StudyResult, goal: Goal) -> int:
    """Complete trials with a value after step 0, and none a tenth of the way from chance to the threshold."""
    table = load([study])
    chance = table[table["step"] == 0][METRIC].median()
    sign = 1 if goal.is_lower_better else -1
    way = sign * (chance - goal.threshold)
    if not way > 0:
        return 0
    later = table[table["step"] > 0].dropna(subset=[METRIC])
    progress = (sign * (chance - later[METRIC])).groupby(later["trial_id"]).max()
    return int((progress <= 0.1 * way).sum())


def our_steps(studies: list[StudyResult], goal: Goal, num_trials: int | None = None) -> dict[int, tuple[int, int]]:
    rows = [steps_to_result(study, goal, num_trials) for study in studies]
    return {row.batch_size: (row.steps, row.trial.trial_id) for row in rows if row.is_reached}


def our_best(studies: list[StudyResult], goal: Goal) -> dict[int, tuple[float, int, int]]:
    bests = [best for study in studies if (best := best_measurement(study, goal))]
    return {best.batch_size: (best.value, best.step, best.trial.trial_id) for best in bests}


goals = st.sampled_from([LOWER, HIGHER])


@settings(max_examples=80, deadline=None)
@given(workloads(), goals, st.none() | st.integers(1, 3))
def test_steps_to_result(workload, goal, num_trials):
    assert slow_steps_to_result(load(workload, num_trials), goal) == our_steps(workload, goal, num_trials)


@settings(max_examples=80, deadline=None)
@given(workloads(), goals)
def test_best_measurements(workload, goal):
    assert slow_best(load(workload), goal) == our_best(workload, goal)


@settings(max_examples=80, deadline=None)
@given(studies(8), goals)
def test_trials_stuck_at_chance(study, goal):
    assert slow_stuck(study, goal) == count_stuck(study, goal)


@settings(max_examples=80, deadline=None)
@given(workloads(), goals, st.integers(0, 12))
def test_step_budgets(workload, goal, max_steps):
    table = load([study for study in workload if study.end_step >= max_steps])
    table = table[table["step"] <= max_steps]
    within = [cut for study in workload if (cut := apply_step_budget(study, max_steps))]

    assert slow_best(table, goal) == our_best(within, goal)
    assert slow_steps_to_result(table, goal) == our_steps(within, goal)


@settings(max_examples=80, deadline=None)
@given(workloads(), goals, st.sampled_from([0.0, 0.5, 1.0, 1.5, 3.0]))
def test_example_budgets(workload, goal, epochs):
    train_size = 24
    table = load([study for study in workload if study.end_step >= epochs * train_size / study.batch_size])
    table = table[table["batch_size"] * table["step"] <= epochs * train_size]
    within = [cut for study in workload if (cut := apply_example_budget(study, epochs * train_size))]

    assert slow_best(table, goal) == our_best(within, goal)
    assert slow_steps_to_result(table, goal) == our_steps(within, goal)


@settings(max_examples=60, deadline=None)
@given(workloads(), goals)
def test_groups_by_label_smoothing_where_a_missing_one_is_zero(workload, goal):
    table = load(workload)
    for smoothing in (0.0, 0.1):
        grouped = [group_trials(study, "label_smoothing", missing=0.0).get(smoothing) for study in workload]
        slow = table[table["label_smoothing"] == smoothing]

        assert slow_best(slow, goal) == our_best([group for group in grouped if group], goal)
        assert slow_steps_to_result(slow, goal) == our_steps([group for group in grouped if group], goal)


@settings(max_examples=60, deadline=None)
@given(studies(8), goals, st.integers(1, 4))
def test_the_first_complete_trials_or_an_error_where_there_are_fewer(study, goal, num_trials):
    if study.count(Status.COMPLETE) < num_trials:
        with pytest.raises(InputError, match=f"not the {num_trials} asked for"):
            first_complete_trials(study, num_trials)
    else:
        first = first_complete_trials(study, num_trials)

        assert slow_best(load([study], num_trials), goal) == our_best([first], goal)
