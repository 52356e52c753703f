"""batchlab figure: SVG, PNG and CSV."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from batchlab.cli.figure import NAME_HELP
from batchlab.plots.registry import FIGURES, PAPER_ALL


def read_table(path: str | Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    return list(csv.DictReader(Path(path).read_text().splitlines()))


@pytest.mark.parametrize("name", ["steps-to-result", "metaparameters", "curves", "points", "budgets"])
def test_a_figure_is_three_files_whose_paths_are_printed(call, small_lab, name):
    answer = call("figure", name, "--out", "pictures")
    svg, png, table = (Path(line) for line in answer.out.splitlines())

    assert (answer.code, answer.err) == (0, "")
    assert [str(path) for path in (svg, png, table)] == [
        f"pictures/small-{name}.{kind}" for kind in ("svg", "png", "csv")
    ]
    assert "<svg" in svg.read_text()
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert len(read_table(table)) >= 2


def test_the_table_holds_the_steps_of_the_curve(call, grid_lab):
    """The fewest steps of any learning rate, worked out exactly apart from this code."""
    call("figure", "steps-to-result")
    rows = read_table(Path("figures/grid-steps-to-result.csv"))

    assert [(int(row["batch_size"]), int(row["steps"])) for row in rows] == [
        (1, 4337),
        (4, 1133),
        (16, 334),
        (64, 100),
        (256, 56),
        (1024, 44),
        (4096, 42),
    ]


def test_damaged_measurements_leave_a_figure_of_the_rest(call, small_lab):
    (small_lab / "sweeps" / "small" / "4" / "measurements.parquet").write_bytes(b"")
    answer = call("figure", "steps-to-result")

    assert answer.code == 1
    assert len(answer.out.splitlines()) == 3
    assert "lab/sweeps/small/4/measurements.parquet is damaged" in answer.err
    assert [row["batch_size"] for row in read_table(Path("figures/small-steps-to-result.csv"))] == ["64"]


def test_a_folder_that_cannot_be_made_is_refused(refused, small_lab, small_spec):
    line = refused("figure", "steps-to-result", "--out", small_spec)

    assert f"Could not write {small_spec}" in line


def test_sweeps_to_compare_need_a_goal_in_common_and_can_be_chosen(call, refused, mixed_lab):
    assert "The sweeps have different goals" in refused("figure", "compare")
    assert "choose them with --sweep" in refused("figure", "compare", "nqm/quadratic/sgd")
    answer = call("figure", "compare", "--sweep", "small", "--sweep", "small")

    assert (answer.code, answer.err) == (0, "")
    assert ["nqm/quadratic/sgd"] == list(dict.fromkeys(row["workload"] for row in read_table("figures/compare.csv")))


def test_two_sweeps_of_one_lab_are_two_curves(call, small_lab, small_spec):
    Path("other.toml").write_text(small_spec.read_text().replace('"small"', '"other"').replace("0.1, 0.3, 1.0", "0.2"))
    assert call("run", "other.toml", "--set", "sweep.trials=1", "--workers", 1, "--json").code == 0
    assert call("figure", "compare", "--sweep", "small", "--sweep", "other").code == 0

    assert ["small", "other"] == list(
        dict.fromkeys(row["series"] for row in read_table("figures/compare.csv") if row["kind"] == "measured")
    )


def test_an_unknown_sweep_to_compare_is_refused(refused, mixed_lab):
    assert 'Unknown sweep "smal". Did you mean "small"?' in refused("figure", "compare", "--sweep", "smal")


def test_a_figure_of_one_sweep_takes_one(refused, mixed_lab):
    line = refused("figure", "steps-to-result", "--sweep", "small", "--sweep", "digits-small")

    assert "steps-to-result shows one sweep" in line


def test_a_comparison_is_three_files(call, small_lab):
    answer = call("figure", "compare", "--out", "pictures")

    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines() == [f"pictures/compare.{kind}" for kind in ("svg", "png", "csv")]


def test_a_misspelt_figure_is_refused_with_the_one_that_was_meant(refused, small_lab):
    line = refused("figure", "step-to-result")

    assert 'Unknown figure "step-to-result". Did you mean "steps-to-result"? Known: budgets, compare, curves, ' in line


def test_the_help_names_every_figure():
    """paper-2 to paper-10 go without saying."""
    shown = [name for name in FIGURES if name in NAME_HELP]

    assert [
        *("steps-to-result", "metaparameters", "curves", "points", "budgets", "compare"),
        *("plan", "throughput", "paper-1", "paper-11"),
    ] == shown
    assert PAPER_ALL in NAME_HELP


def test_the_page_of_commands_names_every_figure():
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    section = page.split("## batchlab figure")[1].split("\n## ")[0]

    assert all(f"`{name}`" in section for name in FIGURES if FIGURES[name].needs != "lab")
    assert "`paper-1` to `paper-11`, `paper-all`" in section


def test_a_figure_of_the_paper_is_refused_where_the_lab_has_no_workload_of_it(refused, small_lab):
    assert "Figure 7 of the paper needs a workload that this lab does not have" in refused("figure", "paper-7")
    assert "nothing to show for any figure of the paper. Figure 1 of the" in refused("figure", "paper-all")


def test_published_points_that_are_not_known_are_told(call, small_lab):
    answer = call("figure", "steps-to-result", "--published")

    assert 0 == answer.code
    assert "batchlab: there are no published steps of nqm/quadratic/sgd to val/risk <= 0.3\n" == answer.err
    assert {""} == {row["published_steps"] for row in read_table("figures/small-steps-to-result.csv")}


def test_nothing_was_published_of_metaparameters(refused, small_lab):
    assert "leave out --published" in refused("figure", "metaparameters", "--published")


def test_a_goal_that_no_trial_reached_has_no_metaparameters(refused, small_lab):
    line = refused("figure", "metaparameters", "--goal", "val/risk <= 1e-9")

    assert "nqm/quadratic/sgd has no best metaparameters to draw: no trial reached val/risk <= 1e-09" in line


def test_options_of_one_sweep_do_not_go_with_the_papers_figures(refused, small_lab):
    assert "give --lab and --out" in refused("figure", "paper-1", "--sweep", "small")


def test_curves_are_of_the_batch_sizes_that_are_named(call, grid_lab):
    """Of learning rate 0.1, 0.3 and 1.8 trial 1, 2 and 4: the best ones, by the exact steps in test_reference.py."""
    answer = call("figure", "curves", "--batch-size", 16, "--batch-size", 4, "--against", "examples")
    rows = read_table("figures/grid-curves.csv")
    met = {}
    for row in rows:
        if row["is_best"] == "True" and float(row["value"]) <= 0.05:
            met.setdefault(int(row["batch_size"]), (int(row["step"]), int(row["examples"])))

    assert (answer.code, answer.err) == (0, "")
    assert {4: (1133, 4532), 16: (334, 5344)} == met


def test_of_many_batch_sizes_six_are_shown_and_the_rest_is_named(call, grid_lab):
    answer = call("figure", "curves")

    assert 0 == answer.code
    assert (
        "batchlab: left out, so that the figure stays readable: batch size 64; choose with --batch-size\n" == answer.err
    )
    assert ["1", "4", "16", "256", "1024", "4096"] == list(
        dict.fromkeys(row["batch_size"] for row in read_table("figures/grid-curves.csv"))
    )


def test_only_the_first_trials_are_points(call, grid_lab):
    assert call("figure", "points", "--trials", 2).code == 0

    assert {"0", "1"} == {row["trial_id"] for row in read_table("figures/grid-points.csv")}


def test_points_of_a_race_say_that_it_ended_them(call, grid_lab):
    assert call("figure", "points").code == 0

    assert {"race"} == {row["ended_by"] for row in read_table("figures/grid-points.csv") if row["batch_size"] == "64"}


def test_a_network_has_budgets_of_epochs(call, mixed_lab):
    assert call("figure", "budgets", "digits-small").code == 0
    labels = {row["series"] for row in read_table("figures/digits-small-budgets.csv")}

    assert {"steps", "epochs"} == {label.split()[1] for label in labels if not label.startswith("1 ")}


def test_batch_sizes_that_are_not_there_are_refused(refused, small_lab):
    line = refused("figure", "curves", "--batch-size", 8)

    assert "nqm/quadratic/sgd has no finished study of batch size 8. Choose from 4 and 64." in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("points", "--metric", "val/risk"), "points takes no --metric; leave it out, or draw curves"),
        (("steps-to-result", "--against", "examples"), "steps-to-result takes no --against; leave it out"),
        (("budgets", "--batch-size", 4), "budgets shows all batch sizes; leave out --batch-size"),
        (("paper-1", "--batch-size", 4), "paper-1 shows all batch sizes; leave out --batch-size"),
        (("curves", "--published"), "nothing was published that curves could show; leave out --published"),
        (("curves", "--metric", "val/rsk"), 'Unknown metric "val/rsk". Did you mean "val/risk"?'),
        (("curves", "--against", "epochs"), "--against"),
    ],
)
def test_options_that_a_figure_does_not_take_are_refused(refused, small_lab, arguments, words):
    assert words in refused("figure", *arguments)


def test_a_refusal_names_every_figure_that_would_take_it(refused, small_lab, monkeypatch):
    """One that was registered, too."""
    monkeypatch.setitem(FIGURES, "mine", replace(FIGURES["curves"], name="mine"))

    assert "leave out --batch-size, which curves, points and mine take" in refused(
        "figure", "budgets", "--batch-size", 4
    )
    assert "takes no --metric; leave it out, or draw curves or mine" in refused(
        "figure", "points", "--metric", "val/risk"
    )
