"""batchlab workloads: the built-in studies and their data."""

from __future__ import annotations

import json


def test_every_built_in_study_is_listed_with_its_facts(call):
    rows = json.loads(call("workloads", "--json").out)

    assert [row["study"] for row in rows] == ["digits", "fashion-cnn", "mnist-cnn", "mnist-fc", "nqm"]
    for row in rows:
        assert set(row) == {"name", "study", "goal", "batch_sizes", "trials", "source", "data"}
        assert row["source"] == "builtin"
    assert rows[0] == {
        "name": "digits/fc_128/nesterov_momentum",
        "study": "digits",
        "goal": "val/classification_error < 0.03",
        "batch_sizes": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1297],
        "trials": 32,
        "source": "builtin",
        "data": "present",
    }


def test_files_that_are_not_here_can_be_fetched(call):
    states = {row["study"]: row["data"] for row in json.loads(call("workloads", "--json").out)}

    assert states == {
        "digits": "present",
        "fashion-cnn": "fetchable",
        "mnist-cnn": "fetchable",
        "mnist-fc": "fetchable",
        "nqm": "present",
    }


def test_files_that_are_here_are_present(call, shared_data):
    states = {row["study"]: row["data"] for row in json.loads(call("workloads", "--data", shared_data, "--json").out)}

    assert set(states.values()) == {"present"}


def test_a_file_of_the_wrong_size_is_as_good_as_none(call, tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(b"truncated")
    states = {row["study"]: row["data"] for row in json.loads(call("workloads", "--data", tmp_path, "--json").out)}

    assert (states["mnist-fc"], states["mnist-cnn"], states["fashion-cnn"]) == ("missing", "missing", "fetchable")


def test_the_table_shows_one_line_for_each(call):
    answer = call("workloads")

    assert (answer.code, answer.err) == (0, "")
    assert len(answer.out.splitlines()) == 6
    assert "1 to 4096 (7)" in answer.out.splitlines()[-1]
