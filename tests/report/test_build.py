from __future__ import annotations

import dataclasses
from html.parser import HTMLParser

import pytest

from batchlab.core.goal import Goal
from batchlab.errors import InputError
from batchlab.report.build import build_report, write_report
from batchlab.report.findings import Findings
from batchlab.report.tables import published_beside

VOID = {"meta", "br", "wbr", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Collects tags, addresses, ids, table cells and visible text, and checks that tags close in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "data", "action"):
                self.addresses.append(value)
            if name == "id":
                self.ids.append(value)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert tag == self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += data
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data


@pytest.fixture
def section(make_summary):
    return Findings(
        summary=make_summary(unreached=(1,), is_open=(8,), at_boundary=("momentum",), seeds=6),
        spec={"name": "digits", "sweep": {"trials": 32}},
        environment={"host": "lab <1>", "versions": {"torch": "2.13.0"}},
        protocol={"protocol": "race", "trained_steps": 12_000, "full_steps": 48_000},
    )


def test_the_page_is_well_formed_and_loads_nothing(section):
    html = build_report([section])
    page = Page(html)

    assert page.open == []
    assert {True} == {address.startswith("#") for address in page.addresses}
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert "@import" not in html
    assert "http://" not in html
    assert "https://" not in html


def test_both_figures_are_inside_twice_and_ids_are_unique_over_all_workloads(section, make_summary):
    page = Page(build_report([section, Findings(summary=make_summary(workload="digits/fc_128/sgd"))]))

    assert page.tags.count("svg") == 8  # each for a screen and for a phone
    assert len(page.ids) == len(set(page.ids))
    assert {address[1:] for address in page.addresses} <= set(page.ids)


def test_the_steps_table_is_complete(section):
    (header, *rows), (counts, *trials), (_, *best) = Page(build_report([section])).tables[:3]

    assert header[:2] == ["Batch size", "Confirmed"]
    assert [row[0] for row in rows[:4]] == ["1", "2", "4", "8"]
    assert len(rows) == 12
    assert rows[0][1:3] == ["not reached", "> 20,000, budget"]
    assert dict(zip(counts[:4], trials[1], strict=False)) == {
        "Batch size": "2",
        "Complete": "32",
        "Infeasible": "3",
        "Incomplete": "1",
    }
    assert best[1][1].startswith("learning_rate 0.0141 (")


def test_the_page_tells_answer_protocol_warnings_fit_training_spec_and_environment(section):
    text = Page(build_report([section])).text

    assert "The fewest steps to val/classification_error < 0.03 are" in text
    assert "Full protocol: every trial was trained to its budget." in text
    assert "At batch size 1 the goal was not reached within the budget of 20,000 steps." in text
    assert "Perfect scaling (efficiency of 80 % or more) up to" in text
    assert "confirmed medians" in text
    assert "every trial to its budget would be 48,000 (4 times)" in text
    assert 'name = "digits"' in text
    assert "versions.torch" in text


def test_published_steps_stand_in_the_table_and_in_a_sentence(make_summary):
    summary = make_summary(sizes=(16, 32, 64), workload="mnist/simple_cnn_base/nesterov_momentum")
    summary = dataclasses.replace(summary, goal=Goal.read("val/classification_error < 0.01"))
    page = Page(build_report([Findings(summary=summary, published=published_beside(summary))]))

    assert {"Published", "Ratio"} <= set(page.tables[0][0])
    assert published_beside(summary).sentence in page.text


def test_what_comes_from_outside_is_escaped(make_summary):
    evil = "<script>alert(1)</script>"
    html = build_report(
        [
            Findings(
                summary=make_summary(workload=f"a/{evil}/c"),
                spec={"name": evil},
                environment={evil: evil},
                protocol={evil: evil},
            )
        ],
        title=evil,
    )

    assert "<script" not in html
    assert Page(html).text.count(evil) >= 6


def test_training_is_told_in_words(make_summary):
    protocol = {"protocol": "race", "core_seconds_of_search": 12.6, "pack_sizes": {"1": 32, "2": 32, "1024": 4}}

    page = Page(build_report([Findings(summary=make_summary(), protocol=protocol)]))

    assert "Search, seconds of one core" in page.text
    assert "32 at batch size 1 and 2; 4 at batch size 1,024" in page.text
    assert "pack_sizes" not in page.text and "core_seconds" not in page.text


def test_what_was_not_given_is_left_out(make_summary):
    page = Page(build_report([Findings(summary=make_summary(sizes=(1, 2), unreached=(1, 2)))]))

    assert page.tags.count("svg") == 2
    for heading in ("Regimes", "Fit", "Training", "Spec", "Environment"):
        assert f"\n{heading}\n" not in page.text


def test_several_workloads_get_an_overview_with_links(section, make_summary):
    page = Page(build_report([section, Findings(summary=make_summary(workload="digits/fc_128/sgd"))]))

    assert page.addresses[:2] == ["#workload-1", "#workload-2"]
    assert page.tables[0][2][0] == "digits/fc_128/sgd"


def test_the_same_sections_give_the_same_page(section):
    assert build_report([section]) == build_report([section])


def test_a_report_on_nothing_is_refused():
    with pytest.raises(InputError, match="no workload to report on"):
        build_report([])


def test_the_page_is_written_whole_under_its_name(tmp_path, section):
    path = write_report(tmp_path / "new" / "report.html", [section])

    assert build_report([section]) == path.read_text(encoding="utf-8")
    assert [path] == list(path.parent.iterdir())
