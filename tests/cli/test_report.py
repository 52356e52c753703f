"""batchlab report: one page that needs nothing else."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path


class Addresses(HTMLParser):
    """Collects what a page would load: every address in it, and every script."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "iframe", "object", "embed", "base"):
            self.found.append(tag)
        self.found += [value or "" for name, value in attrs if name in ("src", "srcset", "href", "xlink:href", "data")]


def test_the_page_lies_in_the_lab_and_holds_both_workloads(call, mixed_lab):
    answer = call("report")
    page = (mixed_lab / "report.html").read_text()

    assert (answer.code, answer.out, answer.err) == (0, "lab/report.html\n", "")
    assert "nqm/quadratic/sgd" in page
    assert "digits/fc_8/nesterov_momentum" in page


def test_the_page_is_self_contained(call, mixed_lab):
    call("report", "--out", "page.html")
    page = Path("page.html").read_text()
    addresses = Addresses()
    addresses.feed(page)

    assert page.count("<svg") >= 4
    assert [address for address in addresses.found if not address.startswith("#")] == []
    assert re.findall(r"@import|url\((?!['\"]?#)", page) == []


def test_one_sweep_can_be_asked_for(call, mixed_lab):
    call("report", "--sweep", "small", "--out", "page.html")

    assert "digits/fc_8" not in Path("page.html").read_text()


def test_another_goal_can_be_asked_for(call, small_lab):
    call("report", "--goal", "val/risk <= 0.5")

    assert "Goal: val/risk &lt;= 0.5" in (small_lab / "report.html").read_text()


def test_a_sweep_that_did_not_measure_the_goal_is_left_out_and_told(call, mixed_lab):
    answer = call("report", "--goal", "val/risk <= 0.5")

    assert answer.code == 0
    assert answer.err == "batchlab: sweep digits-small did not measure val/risk; it is left out\n"
    assert "digits/fc_8" not in (mixed_lab / "report.html").read_text()


def test_a_goal_that_no_sweep_measured_is_refused(refused, small_lab):
    assert 'Unknown metric "val/risc". Did you mean "val/risk"?' in refused("report", "--goal", "val/risc <= 0.5")


def test_a_sweep_without_results_is_left_out_and_told(call, mixed_lab):
    for path in mixed_lab.glob("sweeps/digits-small/*/"):
        shutil.rmtree(path)
    answer = call("report")

    assert (answer.code, answer.out) == (0, "lab/report.html\n")
    assert answer.err.count("\n") == 1
    assert "sweep digits-small has no finished study" in answer.err
    assert "digits/fc_8" not in (mixed_lab / "report.html").read_text()


def test_a_damaged_spec_leaves_a_page_and_a_figure_of_the_other_sweeps(call, mixed_lab):
    with (mixed_lab / "sweeps" / "small" / "sweep.json").open("a") as file:
        file.write("x")

    for command in (("report",), ("figure", "compare")):
        answer = call(*command)
        assert answer.code == 1
        assert "lab/sweeps/small/sweep.json" in answer.err
    assert "digits-small" in (mixed_lab / "report.html").read_text()


def test_damaged_measurements_leave_a_page_of_the_rest(call, small_lab):
    (small_lab / "sweeps" / "small" / "4" / "measurements.parquet").write_bytes(b"")
    answer = call("report")

    assert (answer.code, answer.out) == (1, "lab/report.html\n")
    assert answer.err.count("\n") == 1
    assert "lab/sweeps/small/4/measurements.parquet is damaged" in answer.err
    assert "nqm/quadratic/sgd" in (small_lab / "report.html").read_text()


def test_a_lab_without_sweeps_is_refused(refused, tmp_path):
    (tmp_path / "lab" / "sweeps").mkdir(parents=True)
    (tmp_path / "lab" / "lab.json").write_text('{"format": 1}')

    assert "Run a sweep first" in refused("report")


def test_a_page_that_cannot_be_written_is_refused(refused, small_lab, tmp_path):
    (tmp_path / "page.html").mkdir()

    assert "Could not write page.html: Is a directory" in refused("report", "--out", "page.html")
