"""batchlab query: SQL in, a table, CSV or JSON out; nothing is written."""

from __future__ import annotations

import json

import pytest

COUNT = "select sweep, batch_size, count(*) as rows from measurements group by all order by batch_size"


def test_an_answer_is_a_table(call, small_lab):
    answer = call("query", COUNT)
    header, *rows = (line.split() for line in answer.out.splitlines())

    assert (answer.code, answer.err) == (0, "")
    assert header == ["sweep", "batch_size", "rows"]
    assert [row[:2] for row in rows] == [["small", "4"], ["small", "64"]]


def test_it_may_be_comma_separated_or_json(call, small_lab):
    first, *lines = call("query", COUNT, "--csv").out.splitlines()
    told = json.loads(call("query", COUNT, "--json").out)

    assert first == "sweep,batch_size,rows"
    assert [line.split(",")[:2] for line in lines] == [["small", "4"], ["small", "64"]]
    assert [str(row["rows"]) for row in told] == [line.split(",")[2] for line in lines]


def test_columns_of_one_name_are_not_lost_in_json(refused, small_lab):
    sql = "select a.step, b.step from measurements a join measurements b using (trial_id)"

    assert "2 columns are called step: name them apart with `as`" in refused("query", sql, "--json")


def test_metaparameters_of_trials_can_be_asked_for(call, small_lab):
    told = json.loads(call("query", "select max(metaparameters.learning_rate) as rate from trials", "--json").out)

    assert told[0]["rate"] > 0


def test_what_is_no_number_is_null_in_json(call, small_lab):
    assert json.loads(call("query", "select 'nan'::double as x, null as y", "--json").out) == [{"x": None, "y": None}]


def test_a_pivot_asks(call, small_lab):
    sql = "pivot measurements on batch_size using count(*) group by sweep"

    assert "small" in call("query", sql).out


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("selct 1", "Parser Error"),
        ("select nothing from measurements", 'column "nothing" not found'),
        ("select * from elsewhere", "elsewhere"),
        ("copy trials to 'stolen.csv'", "nothing can be written, and COPY would"),
        ("drop view trials", "batchlab: query: nothing can be written, and DROP would; write a `select ...`."),
        ("create table mine as select 1; select * from mine", "and CREATE would"),
        ("select * from read_csv('/etc/passwd')", "disabled"),
        ("select * from '/etc/passwd'", "passwd"),
        ("attach 'other.db'", "and ATTACH would"),
        ("", "this asks nothing"),
        ("select \x00", "query: "),
    ],
)
def test_a_question_that_cannot_be_answered_is_one_line(refused, small_lab, tmp_path, sql, sentence):
    before = sorted(path.name for path in small_lab.parent.iterdir())

    line = refused("query", sql)

    assert sentence.lower() in line.lower()
    assert sorted(path.name for path in small_lab.parent.iterdir()) == before


def test_a_damaged_file_is_named(call, small_lab):
    path = small_lab / "sweeps" / "small" / "4" / "trials.json"
    path.write_text(path.read_text().replace("COMPLETE", "INFEASIBLE", 1))

    answer = call("query", COUNT)

    assert answer.code == 1
    assert "lab/sweeps/small/4/trials.json was changed after it was written" in answer.err


def test_csv_and_json_at_once_are_refused(refused, small_lab):
    assert "give one of the two" in refused("query", COUNT, "--csv", "--json")
