"""Loops of the user's own, run as a sweep: rows at their own steps, the race, stops, growth and what is wrong."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import batchlab
from batchlab.errors import Interrupted, LabError, TrainerError
from batchlab.own.loop_sweep import LoopSweep
from batchlab.run.confirm import confirm_sweep
from batchlab.run.run_sweep import run_sweep
from batchlab.store.archive.exporter import export_lab
from batchlab.store.lab import Lab


def descend(batch_size, seed, learning_rate):
    """A loss that falls by a share of itself in each update, reported every 5; the seed moves it a little."""
    step, loss = 0, 1 + seed % 7 / 100
    while True:
        step, loss = step + 5, loss * (1 - learning_rate) ** 5
        yield step, {"val/loss": loss}


@pytest.fixture
def make_sweep():
    def make(train=descend, **changes):
        keywords = {
            "name": "own",
            "train": train,
            "batch_sizes": [8],
            "trials": 4,
            "max_steps": 1000,
            "goal": "val/loss < 0.01",
            "search_space": {"learning_rate": (0.01, 0.5, "log")},
        }
        sweep = LoopSweep(**{**keywords, **changes})
        sweep.file = None
        return sweep

    return make


def study_of(lab, batch_size=8):
    return Lab.open(lab).study_folder("own", batch_size)


def curves(lab, batch_size=8):
    rows = study_of(lab, batch_size).result().measurements
    return {i: (rows.curve(i).steps.tolist(), rows.curve(i).metrics["val/loss"].tolist()) for i in set(rows.trial_id)}


def test_rows_lie_where_the_loop_reports_and_end_with_the_race(make_sweep, tmp_path):
    summary = run_sweep(make_sweep(), tmp_path / "lab")

    record, found = study_of(tmp_path / "lab").record(), curves(tmp_path / "lab")
    best = summary.rows[0].steps
    assert record.best_steps == best and record.end_step == math.ceil(1.5 * best)
    last = record.end_step - record.end_step % 5
    for steps, losses in found.values():
        assert steps == list(range(5, last + 1, 5))
        assert np.all(np.diff(losses) < 0)
    reached = [
        steps[next(i for i, loss in enumerate(losses) if loss < 0.01)]
        for steps, losses in found.values()
        if min(losses) < 0.01
    ]
    assert best == min(reached)


def test_reports_that_differ_between_trials_are_kept_as_they_are(make_sweep, tmp_path):
    def uneven(batch_size, seed, learning_rate):
        stride, losses = 3 + seed % 5, descend(batch_size, seed, learning_rate)
        for step, metrics in losses:
            if step % stride == 0:
                yield step, {**metrics, "train/loss": 2.0} if step % 2 else metrics

    run_sweep(make_sweep(uneven), tmp_path / "lab")

    rows = study_of(tmp_path / "lab").result().measurements
    assert set(rows.metrics) == {"val/loss", "train/loss"}
    assert np.isnan(rows.metrics["train/loss"][rows.step % 2 == 0]).all()
    assert (rows.metrics["train/loss"][rows.step % 2 == 1] == 2.0).all()


def test_a_loop_that_ends_by_itself_is_complete(make_sweep, tmp_path):
    def short(batch_size, seed, learning_rate):
        for step in (10, 20, 33):
            yield step, {"val/loss": 1.0}

    summary = run_sweep(make_sweep(short), tmp_path / "lab")

    assert summary.rows[0].steps is None
    assert {trial.last_step for trial in study_of(tmp_path / "lab").trials()} == {33}


def test_a_loss_that_is_no_number_diverges_at_its_step(make_sweep, tmp_path):
    def sometimes(batch_size, seed, learning_rate):
        if seed % 2:
            yield 5, {"val/loss": math.nan}
        yield 10, {"val/loss": 0.5}
        yield 20, {"val/loss": math.inf if seed % 3 == 0 else 0.001}

    run_sweep(make_sweep(sometimes, trials=3, max_attempts=30), tmp_path / "lab")

    study = study_of(tmp_path / "lab")
    ends = {(trial.status, trial.diverged_step) for trial in study.trials()}
    assert ends <= {("COMPLETE", None), ("INFEASIBLE", 5), ("INFEASIBLE", 20)} and len(ends) == 3


def test_a_trial_that_reports_too_late_for_the_race_is_not_left_out(make_sweep, tmp_path):
    def early_or_late(batch_size, seed, learning_rate):
        yield (4 if learning_rate > 0.1 else 500), {"val/loss": 0.001}

    summary = run_sweep(make_sweep(early_or_late), tmp_path / "lab")

    assert summary.rows[0].steps == 4
    assert [trial.status for trial in study_of(tmp_path / "lab").trials()] == ["COMPLETE"] * 4


def test_trials_that_all_diverge_at_once_leave_nothing_to_say(make_sweep, tmp_path):
    def broken(batch_size, seed, learning_rate):
        yield 3, {"val/loss": math.nan}

    summary = run_sweep(make_sweep(broken, trials=2, max_attempts=3), tmp_path / "lab")

    assert summary.rows[0].steps is None
    assert "0 of 2 trials complete" in study_of(tmp_path / "lab").record().note


def test_a_loop_that_has_ended_before_its_budget_is_told(make_sweep, tmp_path):
    def short(batch_size, seed, learning_rate):
        yield 33, {"val/loss": 1.0}

    run_sweep(make_sweep(short), tmp_path / "lab")

    assert study_of(tmp_path / "lab").record().note == "no trial has reported after step 33"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([(5, {"loss": 1.0})], "Trial 0 at batch size 8 has reported loss, but never val/loss, the goal's metric"),
        ([], 'Trial 0 at batch size 8 has ended and reported nothing: yield step, {"val/loss": 0.3}'),
        ([(5, {}), (4, {})], "Trial 0 at batch size 8: step 4 is reported after step 5: report steps as they come"),
        ([(step, {"loss": 1.0}) for step in range(1002)], "has reported loss, but never val/loss"),
    ],
)
def test_what_is_wrong_with_a_loop_is_one_sentence(make_sweep, tmp_path, rows, sentence):
    def loop(batch_size, seed, learning_rate):
        yield from rows
        if len(rows) > 1000:
            raise AssertionError("it was asked on")

    with pytest.raises(TrainerError) as caught:
        run_sweep(make_sweep(loop), tmp_path / "lab")

    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_a_study_grows_to_the_same_as_one_begun_at_that_size(make_sweep, tmp_path):
    small, large = {"trials": 3, "race_factor": 1.2}, {"trials": 6, "race_factor": 2.0, "batch_sizes": [8, 16]}
    run_sweep(make_sweep(**small), tmp_path / "grown")
    run_sweep(make_sweep(**large), tmp_path / "grown")
    run_sweep(make_sweep(**large), tmp_path / "fresh")

    for size in (8, 16):
        assert curves(tmp_path / "grown", size) == curves(tmp_path / "fresh", size)


def test_more_trials_leave_those_that_are_known_alone(make_sweep, tmp_path):
    trained = []

    def noted(batch_size, seed, learning_rate):
        trained.append(learning_rate)
        yield from descend(batch_size, seed, learning_rate)

    run_sweep(make_sweep(noted), tmp_path / "lab")
    before = list(trained)
    run_sweep(make_sweep(noted, trials=6), tmp_path / "lab")

    assert sorted(trained[: len(before)]) == sorted(before)
    assert not set(trained[len(before) :]) & set(before)


def test_best_points_are_confirmed_with_other_seeds(make_sweep, tmp_path):
    summary = run_sweep(make_sweep(confirm={"seeds": 6, "points": 1}), tmp_path / "lab")

    confirmed = summary.rows[0].confirmed
    assert confirmed is not None and confirmed.seeds == 6


def test_a_stored_loop_is_never_started_by_confirm(make_sweep, tmp_path):
    run_sweep(make_sweep(), tmp_path / "lab")

    with pytest.raises(LabError, match=r"was trained by a loop of your own, which a stored sweep never starts"):
        confirm_sweep(tmp_path / "lab", "own")


def test_a_loop_with_a_checkpoint_goes_on_where_it_was_stopped(make_sweep, tmp_path):
    """Every few rows the process is told to stop; what comes of it is what comes of a straight run."""
    calls = []

    def stopping(batch_size, seed, learning_rate, checkpoint):
        kept = Path(checkpoint) / "loss.txt"
        step, loss = (float(each) for each in kept.read_text().split()) if kept.exists() else (0, 1 + seed % 7 / 100)
        calls.append(step)
        while True:
            step, loss = step + 5, loss * (1 - learning_rate) ** 5
            kept.write_text(f"{step} {loss!r}")
            yield int(step), {"val/loss": loss}
            if len(calls) <= 12 and step % 15 == 0:
                os.kill(os.getpid(), signal.SIGTERM)

    for _ in range(40):
        try:
            run_sweep(make_sweep(stopping), tmp_path / "lab")
            break
        except Interrupted:
            continue
    run_sweep(make_sweep(), tmp_path / "straight")

    assert sum(start > 0 for start in calls) >= 5
    assert curves(tmp_path / "lab") == curves(tmp_path / "straight")
    assert not list((tmp_path / "lab").rglob("loss.txt"))


PROGRAM = """
import json, os, sys
batch_size, learning_rate, seed, folder = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
kept = os.path.join(folder, "loss.txt")
step, loss = json.load(open(kept)) if os.path.exists(kept) else (0, 1 + seed % 7 / 100)
while True:
    step, loss = step + 5, loss * (1 - learning_rate) ** 5
    print("training")
    print(json.dumps({"step": step, "val/loss": loss}), flush=True)
    with open(kept + ".new", "w") as file:
        json.dump((step, loss), file)
    os.replace(kept + ".new", kept)
"""
SPEC = """
name = "own"
[workload]
command = "{python} train.py {{batch_size}} {{learning_rate}} {{seed}} {{checkpoint}}"
[sweep]
batch_sizes = [8]
trials = 4
max_steps = 1000
goal = "val/loss < 0.01"
[search_space]
learning_rate = {{min = 0.01, max = 0.5, scale = "log"}}
"""


@pytest.fixture
def run_command(tmp_path):
    """Return a function that starts `batchlab run` on a program, in a lab, from the command line."""
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "own.toml").write_text(SPEC.format(python=sys.executable))
    source = str(Path(batchlab.__file__).resolve().parents[1])

    def start(lab):
        return subprocess.Popen(
            [sys.executable, "-m", "batchlab", "run", "own.toml", "--lab", lab],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": source},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def test_a_program_trains_as_the_same_loop_in_python_does(run_command, make_sweep, tmp_path):
    _, said = run_command("lab").communicate()
    run_sweep(make_sweep(), tmp_path / "python")

    assert "own.toml has a command, which is run once for each trial" in said
    assert "SIGTERM" not in said
    assert curves(tmp_path / "lab") == curves(tmp_path / "python")
    assert "training" in next((tmp_path / "lab").rglob("output.txt")).read_text()


def test_a_program_that_prints_nothing_is_told_how_to_report(run_command, tmp_path):
    (tmp_path / "train.py").write_text("")

    process = run_command("lab")
    _, said = process.communicate()

    assert process.returncode == 2
    told = 'at batch size 8 has ended and reported nothing: print lines such as {"step": 5, "val/loss": 0.3}.'
    assert said.splitlines()[-1].endswith(told)


def test_a_lab_of_a_loop_has_no_place_in_the_published_layout(make_sweep, tmp_path):
    run_sweep(make_sweep(), tmp_path / "lab")

    with pytest.raises(LabError, match=r"is of a loop of your own: .*Nothing was exported"):
        list(export_lab(Lab.open(tmp_path / "lab"), tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_program_that_is_killed_ten_times_goes_on_to_the_same(run_command, make_sweep, tmp_path):
    import time

    for kill in range(10):
        process = run_command("lab")
        time.sleep(1.5 + 0.2 * kill)
        process.kill()
        process.communicate()
    run_command("lab").communicate()
    run_sweep(make_sweep(), tmp_path / "python")

    assert curves(tmp_path / "lab") == curves(tmp_path / "python")
