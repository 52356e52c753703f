"""A summary in a notebook."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from batchlab.errors import InputError
from batchlab.report.shown import ShownSummary


@pytest.fixture
def shown(make_summary):
    return ShownSummary.of(make_summary(sizes=(1, 4, 16), unreached=(16,), workload="digits/<b>/sgd"))


def test_it_is_the_same_summary(make_summary):
    summary = make_summary(sizes=(1, 4))

    assert dataclasses.asdict(summary) | {"plan": None} == dataclasses.asdict(ShownSummary.of(summary))


def test_printed_it_is_its_table_and_its_answer(shown):
    lines = repr(shown).splitlines()

    assert lines[0] == "digits/<b>/sgd: steps to val/classification_error < 0.03"
    assert lines[1].split("  ")[0] == "Batch size"
    assert lines[4].split()[:3] == ["16", "not", "reached"]
    assert lines[5].startswith("The fewest steps to ")
    assert str(shown) == repr(shown)


def test_in_a_notebook_it_is_a_table_and_foreign_names_are_escaped(shown):
    html = shown._repr_html_()

    assert html.count("<tr") == 4
    assert "digits/&lt;b&gt;/sgd" in html
    assert "<b>" not in html


def test_in_a_notebook_no_interval_is_broken(shown):
    html = shown._repr_html_()

    assert html.startswith("<style>\ntable.steps tr :is(th, td) { text-align: left !important; white-space: nowrap; }")
    assert '<table class="steps">' in html


def test_its_figure_is_the_curve(shown):
    figure = shown.plot()

    assert figure.axes[0].get_xlabel() == "Batch size (examples per update)"
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_data_frame_has_a_row_for_each_batch_size(shown):
    frame = shown.to_pandas()

    assert frame["batch_size"].tolist() == [1, 4, 16]
    assert frame["answer"].unique().tolist() == ["best_of"]
    assert frame["steps"].isna().tolist() == [False, False, True]
    assert frame.loc[0, "minimum"] == shown.rows[0].steps
    assert frame.loc[0, "low"] == shown.rows[0].best_of.interval.low
    assert frame["learning_rate"].tolist()[:2] == [0.01, 0.02]


def test_a_metaparameter_does_not_take_the_place_of_an_answer(make_summary):
    summary = make_summary(sizes=(1, 4, 16))
    tuned = tuple(dataclasses.replace(point, metaparameters={"steps": 5.0, "lr": 0.1}) for point in summary.tuned)
    frame = ShownSummary.of(dataclasses.replace(summary, tuned=tuned)).to_pandas()

    assert frame.loc[0, "steps"] == summary.rows[0].best_of.steps
    assert (frame.loc[0, "metaparameters.steps"], frame.loc[0, "lr"]) == (5.0, 0.1)


def test_without_pandas_the_way_out_is_named(shown, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(InputError, match="pip install pandas"):
        shown.to_pandas()


def test_neither_matplotlib_nor_pandas_is_loaded_until_it_is_asked_for():
    program = "import sys, batchlab.report.answers; print(*{'matplotlib', 'pandas', 'jinja2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ""
