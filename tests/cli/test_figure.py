"""batchlab figure: SVG, PNG and CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from batchlab.cli.figure import NAME_HELP
from batchlab.plots.registry import FIGURES, PAPER_ALL


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.mark.parametrize("name", ["steps-to-result", "metaparameters"])
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
    """The column minima of the table in reference/measurements.md, section 0.1."""
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

    assert answer.code == 2
    assert len(answer.out.splitlines()) == 3
    assert "lab/sweeps/small/4/measurements.parquet is corrupt" in answer.err
    assert [row["batch_size"] for row in read_table(Path("figures/small-steps-to-result.csv"))] == ["64"]


def test_a_folder_that_cannot_be_made_is_refused(refused, small_lab, small_spec):
    line = refused("figure", "steps-to-result", "--out", small_spec)

    assert f"Could not write {small_spec}" in line


def test_all_sweeps_of_a_lab_are_compared(call, refused, mixed_lab):
    assert "The sweeps have different goals" in refused("figure", "compare")
    assert "leave out the workload" in refused("figure", "compare", "--sweep", "small")


def test_a_comparison_is_three_files(call, small_lab):
    answer = call("figure", "compare", "--out", "pictures")

    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines() == [f"pictures/compare.{kind}" for kind in ("svg", "png", "csv")]


def test_a_misspelt_figure_is_refused_with_the_one_that_was_meant(refused, small_lab):
    line = refused("figure", "step-to-result")

    assert 'Unknown figure "step-to-result". Did you mean "steps-to-result"? Known: compare, ' in line


def test_the_help_names_every_figure():
    """paper-2 to paper-10 go without saying."""
    shown = [name for name in FIGURES if name in NAME_HELP]

    assert ["steps-to-result", "metaparameters", "compare", "paper-1", "paper-11"] == shown
    assert PAPER_ALL in NAME_HELP
