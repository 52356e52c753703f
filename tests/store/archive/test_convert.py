"""From the bytes of a study to its trials and rows: whatever a file holds, no row gets to another trial."""

from __future__ import annotations

import json

import numpy as np
import pytest

from batchlab.core.measurement import Measurements
from batchlab.store.archive.convert import StudyFiles, assemble, join, parse_files, read_tables
from batchlab.store.archive.layout import RejectedError, StudyPath

PATH = StudyPath("mnist/simple_cnn_base/sgd", 2)
GOOD = b"step,val/a\n0,0.5\n10,0.25\n"


def rows(*contents: bytes) -> tuple[dict[int, list[tuple[int, float]]], dict[int, str]]:
    """The rows of every trial whose table can be read, and why others cannot."""
    tables, broken = read_tables(dict(enumerate(contents)))
    found: dict[int, list[tuple[int, float]]] = {}
    for table in tables:
        for trial_id, step, value in zip(table.trial_id, table.step, table.metrics["val/a"], strict=True):
            found.setdefault(int(trial_id), []).append((int(step), float(value)))
    return found, broken


def test_a_row_never_gets_to_another_trial():
    """A lone carriage return makes a row more of one file, an empty line a row less of the other: parsed together,
    they have as many rows as lines, and the second row of the first was taken for the first of the second."""
    found, broken = rows(b"step,val/a\n0,1\r1,2\n", b"step,val/a\n2,5\n\n", GOOD)

    assert found == {2: [(0, 0.5), (10, 0.25)]}
    assert broken.keys() == {0, 1}


def test_a_quote_that_is_not_closed_takes_nothing_from_the_next_trial():
    found, broken = rows(b'step,val/a\n0,"1\n', b'step,val/a\n2,"5"\n', GOOD)

    assert found == {1: [(2, 5.0)], 2: [(0, 0.5), (10, 0.25)]}
    assert broken.keys() == {0}


@pytest.mark.parametrize(
    "content",
    [
        b"step,val/a\r\n0,0.5\r\n10,0.25\r\n",
        b"step,val/a\n0,0.5\n10,0.25",
        b'"step","val/a"\n0,0.5\n10,0.25\n',
        b'step,val/a\n"0","0.5"\n"10","0.25"\n',
    ],
)
def test_line_ends_and_quotes_are_read_as_they_are_meant(content):
    assert rows(GOOD, content)[0][1] == [(0, 0.5), (10, 0.25)]


@pytest.mark.parametrize("content", [b"step,val/a", b"step,val/a\n", b"step,val/a\r\n"])
def test_a_trial_may_have_no_rows(content):
    assert rows(content) == ({}, {})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "unknown header"),
        (b"\0" * 100_000, "unknown header"),
        (bytes(range(256)) * 300, "unknown header"),
        (b"step,val/a,val/a\n0,1,2\n", "unknown header"),
        (b"val/a,step\n0,1\n", "unknown header"),
        (b"step,val/" + b"a" * 20_000 + b"\n0,1\n", "unknown header"),
        (b"step," + b",".join(b"val/m%d" % i for i in range(65)) + b"\n", "66 columns, more than 65"),
        (b"step,val/a\n0,1,2\n", "cannot be read"),
        (b"step,val/a\n0\n", "cannot be read"),
        (b"step,val/a\n0,x\n", "cannot be read"),
        (b"step,val/a\n0,1\0\n", "cannot be read"),
        (b"step,val/a\n0,\xff\xfe\n", "cannot be read"),
        (b"step,val/a\n1.5,1\n", "cannot be read"),
        (b"step,val/a\n9223372036854775808,1\n", "cannot be read"),
        (b"step,val/a\n,1\n", "a row without a step"),
        (b"step,val/a\n-5,1\n", "a negative step"),
        (b"step,val/a\n5,1\n3,1\n", "do not ascend"),
        (b"step,val/a\n5,1\n5,1\n", "do not ascend"),
        (b"step,val/a\n0,1\n\n5,1\n", "empty or doubled line ends"),
        (b"step,val/a\n0,1\r5,1\r", "empty or doubled line ends"),
    ],
)
def test_a_broken_table_is_told_and_the_others_are_read(content, reason):
    found, broken = rows(content, GOOD)

    assert found == {1: [(0, 0.5), (10, 0.25)]}
    assert broken.keys() == {0}
    assert reason in broken[0]
    assert len(broken[0]) < 1000


def files(**changes: object) -> StudyFiles:
    study = {"batch_size": 2, "early_stopping": False, "parameter_configs": {}, "train_steps": 10, **changes}
    trial = {"parameters": {"learning_rate": 0.1}, "status": "COMPLETE", "steps": 10}
    metadata = {i: json.dumps({**trial, "trial_id": i}).encode() for i in range(3)}
    return StudyFiles(PATH, json.dumps(study).encode(), metadata, dict.fromkeys(range(3), GOOD))


def test_a_trial_is_counted_once_however_much_of_it_is_broken():
    study = files()
    study.metadata[1] = b"{"
    study.measurements[1] = b"nothing"
    study.rejected = [("1", "metadata.json is there twice"), ("1", "measurements.csv is there twice")]

    converted = assemble(PATH, [parse_files(study)])

    assert converted.rejected == [(f"{PATH}/1", "metadata.json is there twice")]
    assert [trial.trial_id for trial in converted.trials] == [0, 2]
    assert set(converted.measurements.trial_id.tolist()) == {0, 2}


def test_a_study_without_a_trial_that_can_be_used_is_none():
    study = files()
    study.measurements = dict.fromkeys(range(3), b"nothing")
    with pytest.raises(RejectedError, match="none of its 3 trials can be used; 0: measurements.csv has an unknown"):
        assemble(PATH, [parse_files(study)])
    study.metadata, study.measurements = {}, {}
    with pytest.raises(RejectedError, match="none of its 0 trials can be used"):
        assemble(PATH, [parse_files(study)])


def test_a_metric_for_each_trial_is_no_way_to_fill_the_memory():
    """A column for every trial's own metric would take the square of the trials."""
    study = files()
    study.metadata = {i: study.metadata[0].replace(b'"trial_id": 0', b'"trial_id": %d' % i) for i in range(200)}
    study.measurements = {i: b"step,val/m%d\n0,1\n" % i for i in range(200)}

    with pytest.raises(RejectedError, match="200 metrics, more than 64"):
        assemble(PATH, [parse_files(study)])


def test_pieces_give_what_the_whole_gives():
    whole = files()
    parts = [StudyFiles(PATH, None, {}, {i: whole.measurements[i]}) for i in range(3)]
    parts += [StudyFiles(PATH, whole.study, whole.metadata, {})]

    one, other = assemble(PATH, [parse_files(whole)]), assemble(PATH, list(map(parse_files, parts)))

    assert one.trials == other.trials
    np.testing.assert_array_equal(one.measurements.step, other.measurements.step)
    np.testing.assert_array_equal(one.measurements.metrics["val/a"], other.measurements.metrics["val/a"])


def test_a_piece_without_rows_takes_no_examples_from_the_others():
    rows = Measurements(np.array([0, 0]), np.array([0, 10]), {"val/loss": np.ones(2)}, np.array([0, 640]))
    empty = Measurements(np.empty(0, np.int64), np.empty(0, np.int64), {})

    assert join([rows, empty]).examples.tolist() == [0, 640]
    assert len(join([empty])) == 0
