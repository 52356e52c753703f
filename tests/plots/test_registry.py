from __future__ import annotations

import pytest

from batchlab.errors import InputError
from batchlab.plots import FIGURES, figure_names, save_figure
from batchlab.plots.paper import PAPER_FIGURES


def test_the_figures_and_what_they_are_made_from():
    assert {
        "steps-to-result": "sweep",
        "metaparameters": "sweep",
        "curves": "trials",
        "points": "trials",
        "budgets": "trials",
        "compare": "sweeps",
        "plan": "plan",
        "throughput": "throughput",
    } == {name: figure.needs for name, figure in FIGURES.items() if not name.startswith("paper-")}
    assert [f"paper-{number}" for number in range(1, 12)] == [
        n for n, figure in FIGURES.items() if figure.needs == "lab"
    ]


def test_a_figure_of_the_paper_knows_what_it_reads():
    assert PAPER_FIGURES[7].needs == FIGURES["paper-7"].reads
    assert {"imagenet/resnet_50/nesterov_momentum": ["val/classification_error"]} == FIGURES["paper-7"].reads


def test_one_name_stands_for_all_of_the_paper():
    assert [name for name in FIGURES if name.startswith("paper-")] == figure_names("paper-all")
    assert ["compare"] == figure_names("compare")


def test_an_unknown_name_is_answered_with_the_one_that_was_meant():
    with pytest.raises(
        InputError, match=r'^Unknown figure "step-to-result"\. Did you mean "steps-to-result"\? Known: '
    ):
        figure_names("step-to-result")


@pytest.mark.parametrize("name", ["steps-to-result", "metaparameters"])
def test_a_figure_of_one_sweep_is_saved_by_name(tmp_path, make_summary, name):
    paths = save_figure(name, make_summary(sizes=(1, 4, 16)), tmp_path / "one")

    assert ["one.svg", "one.png", "one.csv"] == [path.name for path in paths]
    assert all(path.stat().st_size for path in paths)


def test_published_points_go_where_they_are_taken(tmp_path, make_summary):
    summary = make_summary(workload="mnist/fc_256_256_256/sgd", sizes=(2, 32))
    table = save_figure("compare", {"one": summary}, tmp_path / "one", published=True)[2].read_text()

    assert "published (read off Figure 3, equal at batch size 2)" in table


def test_every_figure_says_which_options_it_takes(tmp_path, make_summary):
    taken = {name: figure.takes for name, figure in FIGURES.items() if not name.startswith("paper-")}

    assert {
        "steps-to-result": {"published"},
        "metaparameters": set(),
        "curves": {"metric", "against"},
        "points": set(),
        "budgets": set(),
        "compare": {"published"},
        "plan": set(),
        "throughput": set(),
    } == taken
    assert {"curves": 6, "points": 12} == {n: f.most_batch_sizes for n, f in FIGURES.items() if f.most_batch_sizes}
    with pytest.raises(TypeError):
        save_figure("metaparameters", make_summary(), tmp_path / "two", published=True)


@pytest.mark.parametrize("name", ["curves", "points", "budgets"])
def test_a_figure_of_trials_is_saved_by_name(tmp_path, make_trained, name):
    paths = save_figure(name, make_trained(), tmp_path / "one")

    assert ["one.svg", "one.png", "one.csv"] == [path.name for path in paths]
    assert all(path.stat().st_size for path in paths)
