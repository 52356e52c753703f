"""batchlab scaling: real step times of a network, kept in the lab, and every wrong input in one line."""

from __future__ import annotations

import json

import pytest

from batchlab.cli.scaling import read_counts
from batchlab.store.throughput import read_throughputs


def test_a_network_is_timed_kept_and_planned_with(call, tmp_path):
    lab = tmp_path / "lab"

    answer = call("scaling", "digits", "--lab", lab, "--batch-sizes", "256,4,64", "--repeats", 2, "--json")

    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    assert [row["batch_size"] for row in found["rows"]] == [4, 64, 256]
    assert all(row["seconds"] > 0 and row["repeats"] == 2 and row["efficiency"] == 1.0 for row in found["rows"])
    assert found["fit"]["t0"] >= 0
    (record,), problems = read_throughputs(lab)
    assert problems == []
    assert record.workload == found["workload"] == "digits/fc_128/nesterov_momentum"
    assert "repeat 2 of 2" in answer.err
    assert call("status", "--lab", lab).code == 0
    assert call("verify", "--lab", lab).code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("digits", "--workers", "2"), "cannot be measured yet"),
        (("digits", "--workers", "1,2"), "cannot be measured yet"),
        (("digits", "--workers", "0"), "whole numbers above 0"),
        (("digits", "--batch-sizes", "4"), "give two --batch-sizes"),
        (("digits", "--batch-sizes", "4,4"), "name each number once"),
        (("digits", "--batch-sizes", "4,-8"), "whole numbers above 0"),
        (("digits", "--batch-sizes", "4,8.5"), "whole numbers above 0"),
        (("digits", "--batch-sizes", ""), "whole numbers above 0"),
        (("digits", "--batch-sizes", "4,5000"), "larger than the training set"),
        (("digits", "--strong", "--weak"), "exclude each other"),
        (("digits", "--repeats", "0"), "--repeats"),
        (("digits", "--set", "engine.device=mars"), "no device"),
        (("nqm",), "computed by a formula"),
        (("nothing-such",), "There is no file"),
    ],
)
def test_wrong_options_are_refused_in_a_line_and_nothing_is_written(refused, options, words):
    assert words in refused("scaling", *options)


def test_a_sweep_of_the_lab_is_found_by_its_name_or_its_workload(refused, grid_lab):
    for name in ("grid", "nqm/quadratic/sgd"):
        assert "computed by a formula" in refused("scaling", name, "--lab", grid_lab)


def test_numbers_are_sorted():
    assert read_counts(" 64, 16", "--batch-sizes") == [16, 64]
