"""batchlab plan: the worked example, a real lab, and every wrong input in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from batchlab.core.sweep import Sweep
from batchlab.store.lab import Lab
from batchlab.store.throughput import MeasuredSteps, ThroughputRecord, read_throughput, save_throughput

STEPS = ("--steps", "s_min=100,e_min=51200")
LINE = ("--throughput", "t0=0.0186,tau=1381")


def time_lab(folder: Path, spec: Sweep) -> Path:
    """Put step times of 10 ms and 1 ms for each 1,000 examples into a lab."""
    record = ThroughputRecord(
        workload=spec.workload.name,
        spec=spec.workload.plain(),
        engine={},
        device="cpu",
        machine={"cpu": "a processor", "cores": 2},
        measured_at="2026-01-01T00:00:00+00:00",
        times=tuple(
            MeasuredSteps(batch_size=size, seconds=tuple(f * (0.01 + size / 1000) for f in (0.9, 1, 1, 1, 1, 1.1)))
            for size in (1, 16, 256)
        ),
    )
    return save_throughput(folder, record)


@pytest.fixture
def timed_lab(grid_lab):
    spec = Lab.open(grid_lab).find(None).spec
    assert spec is not None
    time_lab(grid_lab, spec)
    return grid_lab


def test_the_worked_example_needs_no_lab(call):
    answer = call("plan", *STEPS, *LINE, "--max-workers", 1, "--json")

    found = json.loads(answer.out)
    assert answer.code == 0
    assert found["fastest"]["batch_size"] == 115
    assert round(found["fastest"]["seconds"], 2) == 55.54
    assert found["best_by_deadline"] is None
    assert {row["workers"] for row in found["rows"]} == {1}


def test_the_answer_begins_with_a_sentence_to_act_on(call, timed_lab):
    answer = call("plan", "--lab", timed_lab)

    assert answer.code == 0
    first = answer.out.splitlines()[0]
    assert first.startswith("Train with batch size ")
    assert "a learning rate of " in first
    assert "95 % interval" in first
    assert first.endswith("val/risk <= 0.05.")
    assert "sqrt(B_crit B_half)" in answer.out
    assert "no evaluation" in answer.out


def test_json_of_a_lab_has_intervals_and_marks_what_is_extrapolated(call, timed_lab):
    found = json.loads(call("plan", "--lab", timed_lab, "--max-workers", 4, "--json").out)

    assert found["workload"] == "nqm/quadratic/sgd"
    assert all(row["seconds_ci"][0] < row["seconds"] < row["seconds_ci"][1] for row in found["rows"])
    assert all(row["extrapolated"] for row in found["rows"] if row["workers"] > 1 or row["batch_size"] > 256)
    assert not any(row["extrapolated"] for row in found["rows"] if row["workers"] == 1 and row["batch_size"] <= 256)
    assert any("counted as zero" in note for note in found["notes"])


def test_a_price_makes_the_cost(call):
    rows = json.loads(call("plan", *STEPS, *LINE, "--price-per-worker-hour", 36, "--json").out)["rows"]

    assert all(row["cost"] == pytest.approx(row["seconds"] / 100) for row in rows)


def test_a_deadline_gives_the_best_value_in_time(call, timed_lab):
    found = json.loads(call("plan", "--lab", timed_lab, "--deadline", "500ms", "--json").out)["best_by_deadline"]

    assert found["seconds"] <= 0.5
    assert found["value"] > 0
    assert found["metaparameters"].keys() == {"learning_rate"}
    more = json.loads(call("plan", "--lab", timed_lab, "--deadline", "5s", "--json").out)["best_by_deadline"]
    assert more["value"] <= found["value"]
    assert "In 500 ms the best val/risk is " in call("plan", "--lab", timed_lab, "--deadline", "500ms").out


def test_a_deadline_counts_the_first_trials_that_are_asked_for(call, timed_lab):
    def num_trials(*options):
        answer = call("plan", "--lab", timed_lab, "--deadline", "500ms", "--json", *options)
        return json.loads(answer.out)["best_by_deadline"]["trials"]

    assert num_trials("--trials", 1) == 1 < num_trials()


def test_a_deadline_that_is_too_short_says_so(call, timed_lab):
    out = call("plan", "--lab", timed_lab, "--deadline", "1ms").out

    assert "In 1 ms not one step is done: the shortest takes 11 ms" in out


def test_the_machine_of_the_step_times_is_named(call, timed_lab):
    assert "Note: Step times were measured on a processor, 2 cores." in call("plan", "--lab", timed_lab).out


def test_the_figure_marks_what_is_extrapolated(call, timed_lab, tmp_path):
    answer = call("plan", "--lab", timed_lab, "--max-workers", 4, "--out", tmp_path / "figures")

    assert answer.code == 0
    svg = (tmp_path / "figures" / "plan.svg").read_text()
    assert "extrapolated" in svg
    assert "extrapolated" in (tmp_path / "figures" / "plan.csv").read_text()


def test_figures_by_name(call, timed_lab, tmp_path):
    for name in ("plan", "throughput"):
        answer = call("figure", name, "--lab", timed_lab, "--out", tmp_path / "figures")
        assert answer.code == 0, answer.err
        assert (tmp_path / "figures" / f"grid-{name}.csv").stat().st_size


def test_the_curve_and_the_report_tell_the_plan_in_a_line(call, timed_lab):
    assert "Fastest on a processor, 2 cores: batch size " in call("curve", "--lab", timed_lab).out
    assert call("report", "--lab", timed_lab).code == 0
    assert "Time and cost" in (timed_lab / "report.html").read_text()


def test_the_report_says_what_would_give_the_intervals_that_it_lacks(call, timed_lab, tmp_path):
    (path,) = (timed_lab / "throughput").iterdir()
    found = read_throughput(path)
    twice = tuple(each.model_copy(update={"seconds": each.seconds[:2]}) for each in found.times)
    save_throughput(timed_lab, found.model_copy(update={"times": twice}))

    answer = call("report", "--lab", timed_lab, "--out", tmp_path / "report.html")

    page = (tmp_path / "report.html").read_text()
    assert answer.code == 0, answer.err
    assert "No 95 % interval for 3 of 3 step times: six repeats are the least for one." in page


def test_status_counts_the_machines(call, timed_lab):
    (status,) = json.loads(call("status", "--lab", timed_lab, "--json").out)

    assert status["throughputs"] == 1
    assert "throughputs" in call("status", "--lab", timed_lab).out
    shutil.rmtree(timed_lab / "throughput")
    assert "throughputs" not in call("status", "--lab", timed_lab).out


def test_damaged_step_times_are_named_and_the_rest_is_answered(call, timed_lab):
    (path,) = (timed_lab / "throughput").iterdir()
    path.write_bytes(path.read_bytes()[:-30])

    curve, status = call("curve", "--lab", timed_lab), call("status", "--lab", timed_lab)

    assert curve.code == status.code == 1
    assert path.name in curve.err
    assert "critical batch size" in curve.out
    assert path.name in status.err
    assert path.name in call("plan", "--lab", timed_lab).err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*STEPS, "--throughput", "t0=-1,tau=5"), "give a number"),
        ((*STEPS, "--throughput", "t0=1"), "tau is missing"),
        ((*STEPS, "--throughput", "t0=1,tau=5,colour=7"), "Unknown name"),
        (("--steps", "s_min=1", *LINE), "e_min is missing"),
        ((*STEPS, *LINE, "--price-per-worker-hour", "-1"), "give a price above 0"),
        ((*STEPS, *LINE, "--price-per-worker-hour", "nan"), "give a price above 0"),
        ((*STEPS, *LINE, "--price-per-worker-hour", "1e10"), "from 1e-09 to 1e+09"),
        ((*STEPS, *LINE, "--price-per-worker-hour", "1e-320"), "from 1e-09 to 1e+09"),
        ((*STEPS, "--throughput", "t0=1,tau=5e-324"), "from 1e-15 to 1e+15"),
        ((*STEPS, *LINE, "--lab", "elsewhere"), "--lab is for plans from a lab"),
        ((*STEPS, *LINE, "--max-workers", "0"), "--max-workers"),
        ((*STEPS, *LINE, "--deadline", "5m"), "--deadline is for plans from a lab"),
        ((*STEPS, *LINE, "--goal", "val/risk < 1"), "--goal is for plans from a lab"),
        ((*STEPS, "--trials", "3"), "--trials is for plans from a lab"),
        (("grid", *STEPS, *LINE), "a workload is for plans from a lab"),
        ((*STEPS, *LINE, "--sweep", "grid"), "--sweep is for plans from a lab"),
        (("--deadline", "0s"), "more than no time"),
        (("--deadline", "300"), "such as 300s or 300m"),
        (("--deadline", "-5m"), "with its unit"),
        (STEPS, "There is no lab"),
        ((), "There is no lab"),
    ],
)
def test_wrong_options_are_refused_in_a_line(refused, options, words):
    assert words in refused("plan", *options)


def test_plan_curve_and_report_agree_on_workers_that_shared_cores(call, timed_lab):
    (path,) = (timed_lab / "throughput").iterdir()
    alone = read_throughput(path)
    shared = MeasuredSteps(batch_size=256, workers=4, seconds=(0.08,) * 6)  # on two cores
    save_throughput(timed_lab, alone.model_copy(update={"times": (*alone.times, shared)}))

    rows = json.loads(call("plan", "--lab", timed_lab, "--json").out)["rows"]

    assert {row["workers"] for row in rows} == {1}
    assert "on 4 workers" not in call("curve", "--lab", timed_lab).out


def test_step_times_that_follow_no_line_stop_a_plan_and_nothing_else(call, refused, timed_lab):
    (path,) = (timed_lab / "throughput").iterdir()
    times = [
        MeasuredSteps(batch_size=b, workers=w, seconds=(s,)) for b, w, s in ((1, 1, 1e-9), (8, 1, 1e-9), (64, 2, 9.0))
    ]
    save_throughput(timed_lab, read_throughput(path).model_copy(update={"times": tuple(times)}))

    assert "follow no line" in refused("plan", "--lab", timed_lab)
    assert call("curve", "--lab", timed_lab).code == 0


def test_a_lab_without_step_times_says_how_to_get_them(refused, grid_lab):
    message = refused("plan", "--lab", grid_lab)

    assert "holds no step times of nqm/quadratic/sgd" in message
    assert "batchlab scaling grid" in message
    assert "--throughput t0=" in message


def test_given_step_times_serve_a_lab_without_any(call, grid_lab):
    assert call("plan", "--lab", grid_lab, *LINE).code == 0


def test_given_steps_meet_what_was_timed_in_a_lab_that_trained_nothing(call, refused, grid_lab, tmp_path):
    spec = Lab.open(grid_lab).find(None).spec
    assert spec is not None
    lab = Lab.create(tmp_path / "timed").folder
    time_lab(lab, spec)

    answer = call("plan", "--lab", lab, *STEPS)

    assert answer.code == 0, answer.err
    assert "Step times were measured on a processor, 2 cores." in answer.out
    assert call("plan", "nqm/quadratic/sgd", "--lab", lab, *STEPS).out == answer.out
    assert "holds no sweep" in refused("plan", "other/fc_8/sgd", "--lab", lab, *STEPS)
    other = spec.model_copy(update={"workload": spec.workload.model_copy(update={"alias": "nqm/quadratic/other"})})
    time_lab(lab, other)
    assert "of several workloads: nqm/quadratic/other, nqm/quadratic/sgd" in refused("plan", "--lab", lab, *STEPS)
    for path in (lab / "throughput").iterdir():
        path.write_text("{}")
    assert "was changed after it was written" in refused("plan", "--lab", lab, *STEPS, code=1)


def test_a_goal_that_nobody_met_is_refused(refused, timed_lab):
    assert "easier goal" in refused("plan", "--lab", timed_lab, "--goal", "val/risk <= 1e-12")


def test_a_lab_of_several_sweeps_wants_one_named(refused, mixed_lab):
    assert "holds several sweeps" in refused("plan", "--lab", mixed_lab, *LINE)


def test_a_metric_that_was_not_measured_is_refused(refused, timed_lab):
    assert "val/other" in refused("plan", "--lab", timed_lab, "--goal", "val/other < 1")


def test_a_batch_size_that_changes_while_training_is_refused(refused, call, small_spec, tmp_path):
    stages = "stage_factor = 2.0, stage_length = 50, stage_limit = 1024"
    schedule = f'schedule = {{name = "staircase", of = "batch_size", {stages}, unit = "steps"}}'
    spec = small_spec.read_text().replace('optimizer = "sgd"', f'optimizer = "sgd"\n{schedule}')
    small_spec.write_text(spec)
    ran = call("run", small_spec, "--lab", tmp_path / "grown")
    assert ran.code == 0, ran.err

    assert "changes its batch size while it trains" in refused("plan", "--lab", tmp_path / "grown", *LINE)
    assert "changes its batch size while it trains" in refused("scaling", "small", "--lab", tmp_path / "grown")
