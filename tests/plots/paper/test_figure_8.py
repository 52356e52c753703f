from __future__ import annotations

import pytest

from batchlab.analysis import first_steps, steps_to_result
from batchlab.plots.paper import PAPER_FIGURES, paper_data


@pytest.mark.parametrize("i", range(9))
def test_every_panel_has_the_effective_learning_rate_of_the_first_trial_at_the_goal(i, lab, paper):
    panel, spec = paper(8).panels[i], PAPER_FIGURES[8].panels[i]
    rows = [steps_to_result(study, spec.line.goal, spec.line.num_trials) for study in lab[spec.line.workload]]
    points = [row.trial.metaparameters for row in rows if row.trial]
    (series,) = panel.of_kind("measured")

    assert len(points) >= 4
    assert pytest.approx([p["learning_rate"] / (1 - p["momentum"]) for p in points]) == [p.y for p in series.points]
    assert [row.batch_size for row in rows if row.trial] == [point.x for point in series.points]
    assert all(point.low <= point.y <= point.high for point in series.points if point.low and point.high)


def test_bars_span_the_effective_rates_of_the_top_trials(lab, paper):
    """Trials within 1.5 times the fewest steps, three or more; row by row."""
    line = PAPER_FIGURES[8].panels[0].line
    for study, point in zip(lab[line.workload], paper(8).panels[0].of_kind("measured")[0].points, strict=True):
        steps = first_steps(study, line.goal, line.num_trials)
        fewest = min(step for step in steps.values() if step)
        close = sorted((step, trial_id) for trial_id, step in steps.items() if step and step <= 1.5 * fewest)[:3]
        points = [trial.metaparameters for trial in study.trials if trial.trial_id in [i for _, i in close]]
        rates = [p["learning_rate"] / (1 - p["momentum"]) for p in points]

        assert ((min(rates), max(rates)) if len(close) == 3 else (None, None)) == (point.low, point.high)


def test_both_rules_start_at_the_smallest_batch_size(paper):
    panel = paper(8).panels[0]
    first = panel.of_kind("measured")[0].points[0]
    sizes = [point.x for point in panel.of_kind("measured")[0].points]

    assert pytest.approx([first.y * size for size in sizes]) == [p.y for p in panel.of_kind("linear rule")[0].points]
    assert pytest.approx([first.y * size**0.5 for size in sizes]) == [
        p.y for p in panel.of_kind("square-root rule")[0].points
    ]


def test_the_goal_on_fashion_mnist_is_that_of_figure_1_and_said_so(paper):
    panel = paper(8).panels[1]

    assert panel.title == "Simple CNN on Fashion MNIST"
    assert panel.series[0].quantity.endswith("val/classification_error < 0.1")
    assert "The goal on Fashion MNIST is 0.1" in paper(8).caption


def test_axes_and_legend(drawn):
    assert {(ax.get_xlabel(), ax.get_ylabel()) for ax in drawn(8).axes} == {
        ("Batch size (examples per update)", "Learning rate / (1 \u2212 momentum)")
    }
    assert {(ax.xaxis.get_transform().base, ax.yaxis.get_transform().base) for ax in drawn(8).axes} == {(2, 2)}
    assert [text.get_text() for text in drawn(8).legends[0].get_texts()] == [
        "trial with the fewest steps",
        "range of the top trials",
        "linear rule",
        "square-root rule",
    ]


def test_a_workload_that_never_met_its_goal_says_so(lab):
    def slow(workload):
        studies = lab[workload]
        return [type(study)(**{**vars(study), "trials": ()}) for study in studies] if "mnist" in workload else studies

    assert paper_data(8, slow).panels[0].notes == (
        "mnist/simple_cnn_base/nesterov_momentum did not reach val/classification_error < 0.01 with a learning rate",
    )
