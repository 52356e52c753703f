"""batchlab run against a lab that it must not touch, or that has no room."""

from __future__ import annotations

import json
import os
import re
import resource
import socket
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from batchlab.store.lock import hold_lock


def stored(lab: Path) -> dict[str, Any]:
    """Return what a lab holds but for what differs from run to run: times and places."""
    studies = {}
    for folder in sorted(lab.glob("sweeps/*/*/")):
        record = json.loads((folder / "study.json").read_text())
        trials = json.loads((folder / "trials.json").read_text())
        for data in (record, *trials):
            data.pop("wall_seconds")
        del record["files"], record["digest"]
        for trial in trials:
            trial.pop("environment")
        table = pq.read_table(folder / "measurements.parquet").to_pydict()
        studies[folder.name] = (record, trials, table, sorted(path.name for path in folder.iterdir()))
    return studies


@pytest.mark.parametrize(
    "command",
    [["run", "small.toml"], ["curve"], ["status"], ["report"], ["figure", "metaparameters"]],
    ids=lambda c: c[0],
)
def test_a_lab_of_a_newer_version_is_left_alone(refused, small_lab, small_spec, command):
    (small_lab / "lab.json").write_text('{"format": 5}')

    line = refused(*command)

    assert "lab.json names format 5, written by a newer batchlab; this one reads up to 4. Update batchlab." in line


@pytest.mark.parametrize("text", ["", "[]", '{"format": "new"}', "{"])
def test_a_lab_file_that_tells_no_format_is_named(refused, small_lab, small_spec, text):
    (small_lab / "lab.json").write_text(text)

    assert "lab.json" in refused("run", small_spec, code=1)
    assert "lab.json" in refused("status", code=1)


def test_a_folder_with_other_things_is_no_lab(refused, small_spec, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("\\chapter{One}")

    line = refused("run", small_spec, "--lab", "thesis")

    assert "thesis is neither empty nor a lab" in line
    assert "Use another lab" in line


def test_a_file_is_no_lab(refused, small_spec):
    assert "small.toml" in refused("run", small_spec, "--lab", small_spec)
    assert "Not a directory" in refused("run", small_spec, "--lab", small_spec / "lab")


def test_a_changed_spec_is_refused_and_the_difference_shown(refused, small_lab, small_spec):
    line = refused("run", small_spec, "--set", "sweep.trials=2", "--set", "seed=7")

    assert 'Sweep "small" in lab lab' in line
    assert "changed: seed: 0 -> 7; sweep.trials: 3 -> 2." in line
    assert "Change it back, or give it a new name (--set name=NAME) or another lab." in line


def test_a_second_runner_is_told_who_holds_the_lab(refused, small_lab, small_spec):
    with hold_lock(small_lab / "lock"):
        line = refused("run", small_spec)

    assert f"is in use by process {os.getpid()} on host {socket.gethostname()}" in line


def test_readers_need_no_lock(call, small_lab):
    with hold_lock(small_lab / "lock"):
        assert [call(command).code for command in ("curve", "status")] == [0, 0]


def test_a_corrupt_record_stops_the_run_and_names_the_file(refused, small_lab, small_spec):
    path = small_lab / "sweeps" / "small" / "64" / "study.json"
    path.write_bytes(path.read_bytes()[:100])

    line = refused("run", small_spec, code=1)

    assert f"{path.relative_to(small_lab.parent)} is damaged" in line
    assert "`batchlab verify`" in line


MANY_POINTS = ["--set", "search_space.learning_rate={min = 0.1, max = 1.0, points = 100}"]
LONG_CURVES = [
    *("--set", "sweep.protocol=full", "--set", "sweep.max_steps=5000", "--set", "sweep.batch_sizes=[4]"),
    *("--set", "search_space.learning_rate.values=[0.0001, 0.0002, 0.0003]"),
]


@pytest.mark.parametrize(
    ("settings", "max_bytes", "name"),
    [
        pytest.param([], 10, "lab.json", marks=pytest.mark.slow),
        pytest.param([], 100, "sweep.json", marks=pytest.mark.slow),
        (MANY_POINTS, 2000, "study.json"),
        # Shared memory of the workers is a file of 64 KiB.
        pytest.param(LONG_CURVES, 80_000, "trials-[0-9-]*.parquet", marks=pytest.mark.slow),
    ],
    ids=["lab", "sweep", "study", "part"],
)
def test_a_refused_write_is_one_line_and_the_next_run_completes(
    batchlab_process, call, small_spec, tmp_path, settings, max_bytes, name
):
    """A limit on the size of a file refuses what is larger, as a full disk would."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))

    answer = batchlab_process("run", small_spec, "--workers", 1, *settings, preexec_fn=limit)

    assert (answer.code, answer.out) == (2, "")
    *progress, line = answer.err.splitlines()
    assert all(re.match("batch size |[0-9]+ of ", note) for note in progress), "a slow machine tells how far it is"
    assert re.match(rf"batchlab: Could not write lab/[a-z0-9/]*{name}: File too large\. ", line)
    assert "run the same command again" in line
    assert not list((tmp_path / "lab").rglob("*.tmp"))

    for lab in ("lab", "fresh"):
        assert call("run", small_spec, "--lab", lab, "--workers", 1, "--json", *settings).code == 0
    assert stored(tmp_path / "lab") == stored(tmp_path / "fresh") != {}


def test_a_full_disk_is_one_line_and_the_next_run_completes(
    batchlab_process, call, grid_spec, grid_lab_once, small_disk
):
    lab = small_disk("64k") / "lab"
    answer = batchlab_process("run", grid_spec, "--lab", lab, "--workers", 1)

    assert (answer.code, answer.out) == (2, "")
    *progress, line = answer.err.splitlines()
    assert all(re.match("batch size |[0-9]+ of ", note) for note in progress)
    assert line.startswith(f"batchlab: Could not write {lab}")
    assert "No space left on device" in line

    small_disk("16m")
    assert call("run", grid_spec, "--lab", lab, "--workers", 1, "--json").code == 0
    assert stored(lab) == stored(grid_lab_once)


def test_only_says_that_a_closed_race_has_nothing_to_train(call, small_lab, small_spec):
    answer = call("run", small_spec, "--only", "0..0")

    assert answer.code == 0
    assert "--only 0..0 trained nothing: the race of every batch size is closed" in answer.err
