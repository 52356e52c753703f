"""batchlab workloads: what can be run by name, and its data."""

from __future__ import annotations

import json

import pytest

from batchlab.catalogue.paper import paper_names

BUILTIN = ["digits", "fashion-cnn", "mnist-cnn", "mnist-fc", "nqm"]


@pytest.fixture
def list_all(call):
    def listed(*options):
        return json.loads(call("workloads", "--json", *options).out)

    return listed


@pytest.fixture
def states(list_all):
    def of(*options):
        return {row["study"]: row["data"] for row in list_all(*options)}

    return of


def test_everything_is_listed_with_its_facts(list_all):
    rows = list_all()

    assert [row["study"] for row in rows if row["source"] == "builtin"] == BUILTIN
    assert [row["name"] for row in rows if row["source"] == "paper"] == paper_names()
    assert [row["name"] for row in rows if row["source"] == "small"] == [f"small/{name}" for name in paper_names()]
    for row in rows:
        keys = {"name", "study", "goal", "batch_sizes", "trials", "source", "search_space", "data", "place"}
        assert set(row) == keys
    assert rows[0] == {
        "name": "digits/fc_128/nesterov_momentum",
        "study": "digits",
        "goal": "val/classification_error < 0.03",
        "batch_sizes": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1297],
        "trials": 32,
        "source": "builtin",
        "search_space": "ours",
        "data": "present",
        "place": "",
    }


@pytest.mark.parametrize(("source", "number"), [("builtin", 5), ("paper", 35), ("small", 35)])
def test_one_source_can_be_listed_alone(list_all, source, number):
    rows = list_all("--source", source)

    assert len(rows) == number
    assert {row["source"] for row in rows} == {source}


def test_an_unknown_source_is_refused(call):
    assert call("workloads", "--source", "papers").code == 2


def test_a_data_folder_that_is_none_is_refused(refused, tmp_path):
    line = refused("workloads", "--data", tmp_path / "nowhere")

    assert f"--data names {tmp_path / 'nowhere'}, which is no folder" in line


def test_a_workload_of_the_paper_is_told_with_what_to_run_and_to_get(list_all):
    rows = {row["name"]: row for row in list_all("--source", "paper")}
    row = rows["imagenet/resnet_50/nesterov_momentum"]

    assert (row["study"], row["search_space"]) == ("paper:imagenet/resnet_50/nesterov_momentum", "published")
    assert (row["trials"], row["goal"], row["data"]) == (100, "val/classification_error < 0.25", "missing")
    assert "ILSVRC2012_img_train.tar" in row["place"]
    assert "mnist/train-images-idx3-ubyte.gz" in rows["mnist/fc_1024/sgd"]["place"]


def test_files_that_are_not_here_can_be_fetched(states):
    assert states("--source", "builtin") == {
        "digits": "present",
        "fashion-cnn": "fetchable",
        "mnist-cnn": "fetchable",
        "mnist-fc": "fetchable",
        "nqm": "present",
    }


def test_files_that_are_here_are_present(states, shared_data):
    assert set(states("--source", "builtin", "--data", shared_data).values()) == {"present"}


def test_a_file_of_the_wrong_size_is_as_good_as_none(states, tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(b"truncated")
    found = states("--data", tmp_path)

    assert (found["mnist-fc"], found["mnist-cnn"], found["fashion-cnn"]) == ("missing", "missing", "fetchable")


def test_the_table_shows_one_line_for_each(call):
    answer = call("workloads", "--source", "builtin")

    assert (answer.code, answer.err) == (0, "")
    assert [line.split(": ")[0].split()[-1] for line in answer.out.splitlines()[3:8]] == BUILTIN
    assert "1 to 4096 (7)" in answer.out.splitlines()[7]


def test_the_table_tells_what_to_get_for_missing_data(call):
    lines = call("workloads", "--source", "paper").out.splitlines()

    assert len([line for line in lines if " paper:" in line]) == 35
    assert len([line for line in lines if line.split()[:1] == ["imagenet"]]) == 1


@pytest.mark.parametrize("width", [40, 50, 80, 120])
def test_no_line_is_wider_than_the_terminal(call, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))

    lines = call("workloads").out.splitlines()

    assert [line for line in lines if len(line) > width] == []


def test_a_name_that_is_too_long_goes_on_in_the_next_line(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")

    out = call("workloads", "--source", "paper").out

    assert "    paper:imagenet_subsets/imagenet_half_classes/\n    resnet_50/nesterov_momentum\n" in out


def test_a_name_that_fits_or_goes_into_a_pipe_is_whole(call, monkeypatch):
    name = "paper:imagenet_subsets/imagenet_half_classes/resnet_50/nesterov_momentum"
    piped = call("workloads").out
    monkeypatch.setenv("COLUMNS", "80")

    assert name in piped
    assert name in call("workloads").out
