"""The figures of plans and of throughput: their numbers, their axes, what they mark."""

from __future__ import annotations

import pytest

from batchlab.analysis import StepsCurve, StepTimes, Throughput, ThroughputFit, make_plan
from batchlab.plots import curves_data, plan_data, plan_figure, throughput_data, throughput_figure

CURVE = StepsCurve(s_min=100, e_min=51_200, reached=(16, 1024))
MEASURED = Throughput.measured(
    [StepTimes(batch_size=size, seconds=(0.018 + size / 1400,) * 6) for size in (16, 128, 1024)],
    workload="a/b/c",
    machine="a machine",
)


def test_one_worker_is_one_panel_with_intervals():
    data = plan_data(make_plan(CURVE, MEASURED))

    (panel,) = data.panels
    assert (panel.x_axis.scale, panel.y_axis.scale) == ("log2", "log10")
    assert panel.y_axis.label == "Seconds to the goal"
    (curve,) = panel.of_kind("measured")
    assert curve.points[0].low is not None
    assert "a machine" in data.caption


def test_what_is_extrapolated_is_a_series_of_its_own():
    plan = make_plan(CURVE, MEASURED, max_workers=8)

    time_panel, cost_panel = plan_data(plan).panels

    beyond = {row.batch_size for row in plan.rows if row.is_extrapolated}
    assert {point.x for series in time_panel.of_kind("extrapolated") for point in series.points} == beyond
    assert cost_panel.of_kind("extrapolated")
    assert "Circles are extrapolated." in plan_data(plan).caption
    assert plan_figure(plan_data(plan)).axes


def test_nothing_extrapolated_has_no_circles():
    given = Throughput(ThroughputFit(t0=0.0186, seconds_per_example=1 / 1381))

    (panel,) = plan_data(make_plan(StepsCurve(s_min=100, e_min=51_200), given)).panels

    assert panel.of_kind("extrapolated") == []
    assert panel.of_kind("pick")[0].points[0].x == 115


def test_the_star_means_the_same_in_both_panels():
    plan = make_plan(CURVE, MEASURED, max_workers=8)

    labels = {series.label for panel in plan_data(plan).panels for series in panel.of_kind("pick")}

    assert labels == {"fastest, cheapest, balanced"}
    assert {point.x for point in plan_data(plan).panels[0].of_kind("pick")[0].points} == {
        row.batch_size for row in (plan.fastest, plan.cheapest, plan.balanced)
    }


def test_a_front_of_one_row_has_no_panel():
    """Workers that slow training down: one is the fastest and the cheapest."""
    times = [
        StepTimes(batch_size=size, workers=workers, seconds=(0.02 * workers**3 + size / 1000,) * 6)
        for workers in (1, 2)
        for size in (16, 128, 1024)
    ]
    plan = make_plan(CURVE, Throughput.measured(times))

    assert sum(row.is_pareto for row in plan.rows) == 1
    assert len(plan_data(plan).panels) == 1


def test_throughput_is_examples_over_seconds():
    data = throughput_data(MEASURED)

    (panel,) = data.panels
    (measured,), (fit,) = panel.of_kind("measured"), panel.of_kind("fit")
    assert measured.points[0].y == pytest.approx(16 / (0.018 + 16 / 1400))
    assert measured.points[0].low == pytest.approx(measured.points[0].y)
    assert fit.points[-1].y == pytest.approx(1024 / (0.018 + 1024 / 1400))
    assert "n = 6 repeats on a machine" in data.caption
    assert throughput_figure(data).axes


def test_no_interval_of_throughput_runs_off_its_axis():
    times = [StepTimes(batch_size=size, seconds=(*(0.02,) * 5, 0.002, 0.2)) for size in (16, 128, 1024)]

    (panel,) = throughput_data(Throughput.measured(times)).panels

    bounds = [bound for point in panel.of_kind("measured")[0].points for bound in (point.low, point.high)]
    assert panel.y_axis.low < min(bounds) and max(bounds) < panel.y_axis.high


def test_curves_against_seconds_use_measured_step_times(make_trained):
    from dataclasses import replace

    trained = replace(make_trained(), throughput=MEASURED)

    data = curves_data(trained, against="seconds")

    assert data.panel.x_axis.label == "Seconds on one worker, from measured step times"
    first = data.curves[0].best
    assert first.seconds_of(100) == pytest.approx(100 * (0.018 + 16 / 1400))
    assert "a machine" in data.caption


def test_several_workers_have_a_curve_each_and_shared_cores_are_marked():
    times = [
        StepTimes(batch_size=size, workers=workers, seconds=(0.02 + size / workers / 1000,) * 6, is_shared=workers > 2)
        for workers in (1, 2, 4)
        for size in (16, 128, 1024)
    ]

    (panel,) = throughput_data(Throughput.measured(times)).panels

    assert [series.label for series in panel.of_kind("measured")] == [
        "measured, 1 worker",
        "measured, 2 workers",
        "measured, 4 workers",
    ]
    two = panel.of_kind("measured")[1]
    assert two.behind[0][-1].y == pytest.approx(1024 / (0.02 + 512 / 1000))
    assert [point.x for point in panel.of_kind("shared cores")[0].points] == [16, 128, 1024]
    assert "Squares: more workers than cores" in throughput_data(Throughput.measured(times)).caption
