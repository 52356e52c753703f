from __future__ import annotations

from dataclasses import replace

import pytest

from batchlab.core.trial import Status
from batchlab.errors import InputError
from batchlab.plots.paper import PAPER_FIGURES, paper_data


def slow_best(study, metric, limit):
    """The lowest value of any complete trial at a step within the limit, row by row."""
    complete = {trial.trial_id for trial in study.trials if trial.status is Status.COMPLETE}
    table = study.measurements
    rows = zip(table.trial_id.tolist(), table.step.tolist(), table.metrics[metric].tolist(), strict=True)
    return min(value for trial_id, step, value in rows if trial_id in complete and step <= limit)


@pytest.mark.parametrize("i", range(8))
def test_every_curve_is_the_best_within_its_budget(i, lab, paper):
    panel, spec = paper(11).panels[i], PAPER_FIGURES[11].panels[i]
    expected = []
    for budget in spec.budgets:
        curve = {}
        for study in lab[spec.line.workload]:
            limit = budget if spec.unit == "steps" else budget * spec.num_train_examples / study.batch_size
            if study.end_step >= limit:
                curve[study.batch_size] = slow_best(study, spec.line.goal.metric, limit)
        if curve:
            expected.append(curve)

    assert len(expected) >= 3
    assert expected == [{point.x: point.y for point in series.points} for series in panel.of_kind("measured")]
    assert {12} == {point.num_trials for series in panel.series for point in series.points}


def test_budgets_are_the_papers(paper):
    labels = [[series.label for series in panel.series] for panel in paper(11).panels]
    images, sentences = PAPER_FIGURES[11].panels[0], PAPER_FIGURES[11].panels[4]

    assert [5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6] == list(images.budgets)
    assert [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] == list(PAPER_FIGURES[11].panels[1].budgets)
    assert [1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6] == list(sentences.budgets)
    assert [0.2, 0.5, 1, 2, 5, 10, 20] == list(PAPER_FIGURES[11].panels[5].budgets)
    assert (images.num_train_examples, sentences.num_train_examples) == (55_000, 30_301_028)
    assert {"5,000 steps", "1,000,000 steps"} <= set(labels[0])
    assert labels[1][:2] == ["10 epochs", "20 epochs"]
    assert labels[5][:3] == ["0.2 epochs", "0.5 epochs", "1 epoch"]


def test_the_second_row_is_fashion_mnist(paper):
    titles = [panel.title for panel in paper(11).panels]

    assert titles[2:4] == ["Simple CNN on Fashion MNIST, step budgets", "Simple CNN on Fashion MNIST, epoch budgets"]
    assert paper(11).panels[2].series[0].workload == "solution_quality/fashion_mnist/simple_cnn_base/nesterov_momentum"


def test_axes_and_colours(drawn):
    axes = drawn(11).axes
    lines = [line for line in axes[0].lines if line.get_marker() == "^"]

    assert {(ax.get_xscale(), ax.get_yscale()) for ax in axes} == {("log", "linear")}
    assert [ax.get_ylabel() for ax in axes] == ["Best validation error"] * 4 + ["Best validation cross entropy"] * 4
    assert len({line.get_color() for line in lines}) == len(lines)


def test_the_papers_window_is_used_where_it_holds_the_values_and_never_hides_the_best(lab):
    def scaled(factor):
        def results(workload):
            return [
                replace(
                    study,
                    measurements=replace(
                        study.measurements,
                        metrics={name: factor * values for name, values in study.measurements.metrics.items()},
                    ),
                )
                for study in lab[workload]
            ]

        return paper_data(11, results).panels[2].y_axis

    as_in_the_paper, better, far_away = scaled(1.0), scaled(0.9), scaled(100.0)

    assert (as_in_the_paper.low, as_in_the_paper.high) == (0.05, 0.2)
    assert better.high == 0.2
    assert 0.03 < better.low < 0.9 * 0.055
    assert far_away.high > 0.2


def test_missing_workloads_and_short_training_say_so(lab):
    def part(workload):
        if workload.startswith("solution_quality/mnist"):
            return None
        return [replace(study, end_step=1) for study in lab[workload]] if "fashion" in workload else lab[workload]

    panels = paper_data(11, part).panels

    assert panels[0].notes == ("solution_quality/mnist/simple_cnn_base/nesterov_momentum is not in this lab",)
    assert panels[2].notes == ("no study trained to the end of any budget",)
    assert panels[4].notes == ()


def test_where_no_study_trained_that_long_nothing_is_drawn(lab):
    with pytest.raises(InputError, match=r"^Figure 11 .* of this lab: no study trained to the end of any budget\.$"):
        paper_data(11, lambda workload: [replace(study, end_step=1) for study in lab[workload]])
