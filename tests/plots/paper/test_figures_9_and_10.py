from __future__ import annotations

from dataclasses import replace

import pytest

from batchlab.core.protocol import Protocol
from batchlab.core.trial import Status
from batchlab.plots.draw import draw_sheet
from batchlab.plots.paper import PAPER_FIGURES, paper_data

BASE = "lm1b/transformer_base/nesterov_momentum"
PANELS = [(9, i) for i in range(12)] + [(10, i) for i in range(4)]


def places(trials):
    return sorted((t.metaparameters["learning_rate"], 1 - t.metaparameters["momentum"]) for t in trials)


@pytest.mark.parametrize(("number", "i"), PANELS)
def test_every_point_is_in_its_class(number, i, lab, paper):
    panel, spec = paper(number).panels[i], PAPER_FIGURES[number].panels[i]
    study = next(one for one in lab[spec.line.workload] if one.batch_size == spec.batch_size)
    table, threshold = study.measurements, spec.line.goal.threshold
    rows = zip(table.trial_id.tolist(), table.step.tolist(), table.metrics[spec.line.goal.metric].tolist(), strict=True)
    met: dict[int, int] = {}
    for trial_id, step, value in rows:
        if value < threshold and step <= spec.max_steps:
            met.setdefault(trial_id, step)
    complete = [trial for trial in study.trials if trial.status is Status.COMPLETE]
    expected = {
        "goal met": [trial for trial in complete if trial.trial_id in met],
        "goal not met": [trial for trial in complete if trial.trial_id not in met],
        "infeasible": [trial for trial in study.trials if trial.status is Status.INFEASIBLE],
    }
    best = sorted(expected["goal met"], key=lambda trial: (met[trial.trial_id], trial.trial_id))[:1]

    found = {series.kind: sorted((point.x, point.y) for point in series.points) for series in panel.series}
    assert {kind: places(trials) for kind, trials in (expected | {"best": best}).items()} == found


def test_the_synthetic_lab_has_points_of_every_class(paper):
    counts = [[len(series.points) for series in panel.series] for panel in paper(9).panels]

    assert all(infeasible for infeasible, *_ in counts)
    assert any(not_met for _, not_met, *_ in counts)
    assert {0, 1} == {best for *_, best in counts}


def test_budgets_are_one_epoch_and_25000_steps():
    panels = PAPER_FIGURES[9].panels

    assert [panel.batch_size for panel in panels[:6]] == [128, 256, 512, 1024, 2048, 4096]
    assert [panel.batch_size for panel in panels[6:]] == [512, 1024, 2048, 4096, 8192, 16384]
    assert [panel.batch_size * panel.max_steps for panel in panels[:6]] == [30_301_028] * 6
    assert {panel.max_steps for panel in panels[6:]} == {25_000}
    assert {(panel.batch_size, panel.max_steps) for panel in PAPER_FIGURES[10].panels} == {(1024, 50_000)}
    assert {panel.line.goal.threshold for panel in PAPER_FIGURES[10].panels} == {4.2}


def test_the_x_axis_is_the_learning_rate(drawn):
    for number in (9, 10):
        assert {(ax.get_xlabel(), ax.get_ylabel()) for ax in drawn(number).axes} == {
            ("Learning rate", "1 \u2212 momentum")
        }
        assert {(ax.xaxis.get_transform().base, ax.yaxis.get_transform().base) for ax in drawn(number).axes} == {
            (10, 10)
        }
    assert drawn(9).axes[0].get_xlim() == pytest.approx((10**-4.5, 10**-0.5))
    assert drawn(9).axes[0].get_ylim() == pytest.approx((1e-6, 10))


def test_the_legend_names_the_classes_and_each_panel_counts_them(paper, drawn):
    words = [text.get_text() for text in drawn(9).legends[0].get_texts()]
    panel = paper(9).panels[0]
    numbers = {series.kind: len(series.points) for series in panel.series}

    assert words == [
        "goal met",
        "goal not met",
        "infeasible",
        "fewest steps to the goal",
        "constant learning rate / (1 \u2212 momentum)",
    ]
    expected = "{goal met} goal met, {goal not met} goal not met, {infeasible} infeasible".format_map(numbers)
    assert expected in [text.get_text() for text in drawn(9).axes[0].texts]


def test_points_beyond_the_papers_axes_are_counted(paper, drawn):
    points = [p for series in paper(10).panels[1].series if series.kind != "best" for p in series.points]
    num_beyond = sum(not (1e-4 <= p.x <= 1e-1 and 1e-4 <= p.y <= 1e-1) for p in points)

    assert num_beyond > 0
    assert any(text.get_text().endswith(f", {num_beyond} beyond the axes") for text in drawn(10).axes[1].texts)


def test_a_lab_with_other_ranges_gets_its_own_axes(lab):
    def faster(workload):
        return [
            replace(
                study,
                trials=tuple(
                    t.model_copy(update={"metaparameters": {**t.metaparameters, "learning_rate": 50.0 + t.trial_id}})
                    for t in study.trials
                ),
            )
            for study in lab[workload]
        ]

    axis = paper_data(9, faster).panels[0].x_axis

    assert (axis.low < 50, axis.high > 50) == (True, True)
    assert (axis.scale, axis.low > 10) == ("log10", True)


def test_missing_batch_sizes_and_short_training_say_so(lab):
    def part(workload):
        return [replace(study, end_step=1234) for study in lab[workload] if study.batch_size != 256]

    panels = paper_data(9, part).panels

    assert panels[1].notes == (f"{BASE} has no batch size 256 in this lab",)
    assert panels[0].notes == ("trained 1,234 of 236,726 steps",)
    assert panels[0].series
    assert len(draw_sheet(paper_data(9, part)).axes) == 12


def test_the_outcomes_of_a_race_are_refused_beyond_its_end(lab):
    def raced(workload):
        protocol = Protocol(kind="race", race_factor=1.5)
        return [replace(study, protocol=protocol, end_step=30_000) for study in lab[workload]]

    panels = paper_data(9, raced).panels

    assert () == panels[0].series  # a budget of 236,726 steps
    assert panels[0].notes[0].startswith("What became of every point is not known of a race that ended at step 30,000")
    assert panels[6].series  # of 25,000
    assert () == panels[6].notes
