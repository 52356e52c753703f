"""Workers that die: what they were at goes on from its last checkpoint, and in the end nothing tells the difference."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from batchlab.core.growth import fixed_digest
from batchlab.core.sweep import Sweep
from batchlab.errors import TrialError
from batchlab.run.displays import SilentDisplay
from batchlab.run.executors.choose import choose_executor
from batchlab.run.run_sweep import run_sweep
from batchlab.run.runner import Runner
from batchlab.run.study_run import StudyRun
from batchlab.store.lab import Lab
from batchlab.store.set_aside import SetAside
from tests.contracts.kills import FIFTY, Killer, files, run_with_kills, tables, workers


def test_kills_of_workers_leave_no_trace(make_nqm, tmp_path):
    changes = {"sweep.evaluate": {"every": 1}, "engine": {"pack_size": 2, "checkpoint_seconds": 0.02}}
    sweep, killer = make_nqm(changes), Killer(random.Random(1), most=4)
    run_sweep(sweep, tmp_path / "straight", num_workers=2)

    labs = run_with_kills(sweep, tmp_path, killer)

    assert killer.kills == 4
    for lab in labs:
        assert tables(lab, sweep) == tables(tmp_path / "straight", sweep)
        assert files(lab) == files(tmp_path / "straight")
    assert workers() == []


@pytest.mark.slow
def test_networks_whose_workers_are_killed_come_to_the_same_bits(make_digits, tmp_path):
    """One before the race is over, one among the replicates, or wherever luck has it."""
    changes = {"sweep.batch_sizes": [64], "sweep.confirm": {"seeds": 2, "points": 1}, "engine.checkpoint_seconds": 0.05}
    sweep, killer = make_digits(changes), Killer(random.Random(2), most=2)
    run_sweep(sweep, tmp_path / "straight", num_workers=1)

    labs = run_with_kills(sweep, tmp_path, killer, num_workers=1)

    assert killer.kills == 2
    for lab in labs:
        assert tables(lab, sweep) == tables(tmp_path / "straight", sweep)


@pytest.mark.slow
@pytest.mark.parametrize(("workers_per_trial", "max_steps", "share"), [(1, 5_000, 0.2), (2, 1_500, 0.5)])
def test_fifty_kills_of_workers_leave_no_trace(make_digits, tmp_path, workers_per_trial, max_steps, share):
    """The sweep trains for minutes, so that most kills fall between two of its checkpoints, a second apart."""
    engine = {**FIFTY["engine"], "workers_per_trial": workers_per_trial}
    sweep = make_digits({**FIFTY, "sweep.max_steps": max_steps, "engine": engine})
    killer = Killer(random.Random(3), most=50, share=share)
    run_sweep(sweep, tmp_path / "straight", num_workers=2)

    labs = run_with_kills(sweep, tmp_path, killer)

    assert killer.kills == 50
    for lab in labs:
        assert tables(lab, sweep) == tables(tmp_path / "straight", sweep)
        assert files(lab) == files(tmp_path / "straight")


# Deaths that a task brings about


@dataclass(frozen=True)
class Dying:
    """A trainer whose worker dies: `deaths` times at each of these trials, once a step is reached."""

    inner: Any
    notes: str
    """A folder that remembers the deaths."""

    trial_id: int = 2
    deaths: int = 10**6
    step: int = 20
    moves: bool = False
    """Whether each death comes 10 steps later than the one before."""

    code: int | None = None
    """What it ends with; None is killed."""

    def metrics(self, study):
        return self.inner.metrics(study)

    def program(self, study, points, state=None):
        program = self.inner.program(study, points, state)
        advance = program.advance

        def die(target):
            past = len(os.listdir(self.notes))
            is_time = program.step >= self.step + 10 * past * self.moves
            if past < self.deaths and is_time and any(point.trial_id == self.trial_id for point in points):
                (Path(self.notes) / str(past)).touch()
                os.kill(os.getpid(), signal.SIGKILL) if self.code is None else os._exit(self.code)
            advance(target)

        program.advance = die
        return program


@pytest.fixture
def dying(scripted, tmp_path):
    (tmp_path / "notes").mkdir()
    return lambda **options: Dying(scripted(goal_at={3: 60}), str(tmp_path / "notes"), **options)


def test_three_deaths_in_a_row_end_the_run_with_a_sentence_that_names_the_pack(dying, make_scripted, tmp_path):
    with pytest.raises(TrialError) as caught:
        run_sweep(make_scripted(), tmp_path / "lab", trainer=dying(), num_workers=1)

    said = str(caught.value)
    assert "\n" not in said
    assert "training 2 trials from 2 to 3 at batch size 8 died 3 times in a row" in said
    assert "exit code -9: it was killed, as the system does when memory runs out" in said
    assert "with fewer workers if memory is short" in said
    assert len(list((tmp_path / "notes").iterdir())) == 3


@pytest.mark.slow
def test_any_number_of_deaths_is_borne_where_each_time_something_is_won(dying, scripted, make_scripted, tmp_path):
    """Four deaths, each ten steps further than the last; a checkpoint after every chunk."""
    sweep, killer = make_scripted({"engine.checkpoint_seconds": 0.01}), Killer(random.Random(0), most=0)
    run_sweep(sweep, tmp_path / "straight", trainer=scripted(goal_at={3: 60}), num_workers=1)

    trainer = Slowly(dying(deaths=4, moves=True))
    run_sweep(sweep, tmp_path / "lab", trainer=trainer, num_workers=1, display=killer)

    assert len(list((tmp_path / "notes").iterdir())) == 4
    assert [sentence for sentence in killer.said if "died" in sentence] == [
        "A worker died (exit code -9: it was killed, as the system does when memory runs out): another resumes "
        "its task from the last checkpoint."
    ]
    assert rows_of(tmp_path / "lab", sweep) == rows_of(tmp_path / "straight", sweep)


@dataclass(frozen=True)
class Slowly:
    """Another trainer, of which a chunk takes longer than the time between two checkpoints."""

    inner: Any

    def metrics(self, study):
        return self.inner.metrics(study)

    def program(self, study, points, state=None):
        program = self.inner.program(study, points, state)
        advance = program.advance

        def slowly(target):
            time.sleep(0.02)
            advance(target)

        program.advance = slowly
        return program


def rows_of(lab, sweep):
    results = Lab.open(lab).results(sweep)
    return [(r.measurements.trial_id.tobytes(), r.measurements.step.tobytes()) for r in results.results]


@dataclass(frozen=True)
class DyingWhileMeasured(Dying):
    """Its worker dies as soon as a program is made, `deaths` times."""

    def program(self, study, points, state=None):
        past = len(os.listdir(self.notes))
        if past < self.deaths:
            (Path(self.notes) / str(past)).touch()
            os._exit(self.code or 0)
        return self.inner.program(study, points, state)


def test_a_measurement_is_made_again_where_its_worker_died(scripted, make_scripted, tmp_path):
    """Not by `run_sweep`, which tries the trainer first: the deaths shall be those of the measured pack size."""
    notes, sweep = tmp_path / "notes", make_scripted({"engine.pack_size": "auto"})
    notes.mkdir()
    trainer, store = DyingWhileMeasured(scripted(), str(notes), deaths=2, code=7), Lab.create(tmp_path / "lab")
    store.admit(sweep)
    study = StudyRun(sweep.study(8), store.study_folder("scripted", 8), sweep=fixed_digest(sweep))

    start = choose_executor("local", sweep, trainer, num_workers=1)
    Runner([study], trainer, start, SilentDisplay(), SetAside(tmp_path / "lab")).run()

    assert study.is_finished
    assert len(list(notes.iterdir())) == 2


# Loops of one's own


PROGRAM = """
import json, subprocess, sys, time
batch_size, seed, notes = sys.argv[1:]
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
with open(notes, "a") as file:
    print(child.pid, file=file, flush=True)
for step in range(1, 1000):
    print(json.dumps({"step": step, "val/loss": 1 / step}), flush=True)
    if step == 3 and sum(1 for line in open(notes)) == 1:
        time.sleep(1000)  # the first one is to be met at work
child.kill()
"""


class KillOnce(SilentDisplay):
    """Kills the worker once a file is there."""

    def __init__(self, notes):
        self._notes, self.kills = notes, 0

    def show(self, studies, num_workers):
        if not self.kills and self._notes.exists() and self._notes.read_text().endswith("\n"):
            (worker,) = workers()
            os.kill(worker.pid, signal.SIGKILL)
            self.kills += 1


def has_ended(pid):
    """Return whether a process is gone, or only not yet reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_what_a_program_has_started_ends_with_the_worker_that_followed_it(tmp_path):
    """A worker is killed; the program and its own child end, and the trial begins anew."""
    script, notes = tmp_path / "train.py", tmp_path / "notes.txt"
    script.write_text(PROGRAM)
    sweep = Sweep.parse(
        {
            "name": "own",
            "workload": {"command": f"{sys.executable} {script} {{batch_size}} {{seed}} {notes}"},
            "sweep": {"batch_sizes": [8], "trials": 1, "max_steps": 50, "goal": "val/loss < 0.1"},
            "search_space": {},
        },
        "own",
    )
    killer = KillOnce(notes)

    summary = run_sweep(sweep, tmp_path / "lab", num_workers=1, display=killer)

    children = [int(line) for line in notes.read_text().split()]
    assert (killer.kills, len(children)) == (1, 2)
    assert all(has_ended(pid) for pid in children)
    assert summary.rows[0].steps == 11
