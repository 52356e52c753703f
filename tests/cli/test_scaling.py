"""batchlab scaling: real step times of a network, kept in the lab, and every wrong input in one line."""

from __future__ import annotations

import json
import sys

import pytest

from batchlab.cli.scaling import read_counts
from batchlab.processes import usable_cores
from batchlab.store.lab import Lab
from batchlab.store.throughput import read_throughputs


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="gangs need Linux")
def test_a_network_is_timed_on_one_and_two_workers_and_kept(call, tmp_path):
    lab = tmp_path / "lab"

    answer = call(
        *("scaling", "digits", "--lab", lab, "--workers", "2,1", "--batch-sizes", "512,1,64", "--repeats", 1, "--json")
    )

    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    pairs = [(row["batch_size"], row["workers"]) for row in found["rows"]]
    assert pairs == [(1, 1), (64, 1), (512, 1), (64, 2), (512, 2)]
    assert "left out: batch size 1 on 2 workers. A batch of 1 example cannot be shared by 2 workers" in answer.err
    assert "repeat 1 of 1" in answer.err
    assert all(row["seconds"] > 0 and row["repeats"] == 1 for row in found["rows"])
    alone, pair = found["rows"][1], found["rows"][3]
    assert alone["efficiency"] == 1.0
    assert pair["efficiency"] == pytest.approx(alone["seconds"] / (2 * pair["seconds"]))
    assert pair["shared_cores"] == (usable_cores() < 2)
    assert [each["bytes"] for each in found["sums"]] == [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20]
    exchange = found["fit"]["all_reduce"]
    assert exchange["form"] == "gloo"
    assert exchange["latency"] > 0 and exchange["bandwidth"] > 0
    assert sum(exchange["payloads"]) >= 4 * 9_610  # 64 * 128 + 128 and 128 * 10 + 10 parameters
    (record,), problems = read_throughputs(lab)
    assert problems == []
    assert record.workload == found["workload"] == "digits/fc_128/nesterov_momentum"
    assert call("status", "--lab", lab).code == 0
    assert call("verify", "--lab", lab).code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("digits", "--workers", "2000000"), "are the most"),
        (
            ("digits", "--workers", "1,1024", "--batch-sizes", "4,8"),
            "No batch size is left for 1024 workers. A batch of 8",
        ),
        (("digits", "--workers", "2", "--batch-sizes", "3,4"), "One batch size of each worker"),
        (("digits", "--link", "latency=2ms"), "--link joins several workers"),
        (("digits", "--workers", "1,2", "--link", "fast"), "write it as latency=2ms,bandwidth=100mbit"),
        (("digits", "--workers", "0"), "whole numbers above 0"),
        (("digits", "--batch-sizes", "4"), "give two or more"),
        (("digits", "--batch-sizes", "4,4"), "name each number once"),
        (("digits", "--batch-sizes", "4,-8"), "whole numbers above 0"),
        (("digits", "--batch-sizes", "4,8.5"), "whole numbers above 0"),
        (("digits", "--batch-sizes", ""), "whole numbers above 0"),
        (("digits", "--batch-sizes", "4,5000"), "larger than the training set"),
        (("digits", "--strong", "--weak"), "exclude each other"),
        (("digits", "--batch-sizes", "4,8", "--set", "sweep.batch_sizes=[1,2]"), "say the same thing"),
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


def test_what_cannot_be_kept_is_refused_before_it_is_measured(refused, tmp_path):
    lab = Lab.create(tmp_path / "lab").folder
    (lab / "lock").touch()
    (lab / "throughput").write_text("")

    assert "Could not write" in refused("scaling", "digits", "--lab", lab, "--batch-sizes", "16,64", "--repeats", 1000)


def test_numbers_are_sorted():
    assert read_counts(" 64, 16", "--batch-sizes") == [16, 64]
