"""Gangs: one trial on several processes comes to what it does on one, whatever happens to them."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import dataclass, replace

import numpy as np
import pytest

from batchlab.core.sweep import Sweep
from batchlab.engine.base import Point
from batchlab.engine.observer import Observer
from batchlab.errors import InputError, SpecError, TrainerError
from batchlab.run.displays import SilentDisplay
from batchlab.run.executors.choose import choose_executor
from batchlab.run.executors.executor import Failed, Finished, Lost, Paused, Progress, Saved
from batchlab.run.executors.gang import GangExecutor
from batchlab.run.pack import Hooks, PackTask, train_pack
from batchlab.run.run_sweep import run_sweep
from batchlab.run.shelf import Shelf
from batchlab.store.lab import Lab
from batchlab.store.study_folder import StudyFolder
from tests.contracts.executors import Ask, SlowTrainer, to_the_end, until
from tests.processes import has_ended

STEPS = 50
PATIENCE = 300.0


MODELS = {
    "simple_cnn": {"name": "simple_cnn_narrow", "dropout": 0.4},
    "resnet_8": {"name": "resnet_8", "filters": [4, 6, 8]},
    "ghosts": {"name": "resnet_50", "blocks": [1, 1], "width": 4, "ghost_size": 4},
}


def digits(model="simple_cnn", **engine):
    """Return a sweep of one batch size, and its trainer."""
    from batchlab.run.trainers import make_trainer

    data = {
        "name": "shared",
        "workload": {"dataset": "digits", "model": MODELS[model], "optimizer": "nesterov_momentum"},
        "sweep": {
            "batch_sizes": [24],
            "trials": 2,
            "max_steps": STEPS,
            "goal": "val/classification_error < 0.001",
            "evaluate": {"every": 10},
        },
        "search_space": {
            "learning_rate": {"min": 0.01, "max": 0.1},
            "momentum": {"min": 0.5, "max": 0.9},
            "label_smoothing": {"min": 0.0, "max": 0.1},
        },
        "engine": {"precision": "float64", "microbatch_size": 16, **engine},
    }
    sweep = Sweep.parse(data, "test")
    return sweep, make_trainer(sweep, None)


def task_of(sweep, learning_rate=0.05, **options):
    study = sweep.study(24)
    point = Point(0, {"learning_rate": learning_rate, "momentum": 0.9, "label_smoothing": 0.1})
    return PackTask(study, [point], study.max_steps, keeps_state=True, **options)


def alone(trainer, task, saved=None):
    """Train a pack here, on one worker; `saved` takes its checkpoints."""
    keep = (lambda _: None) if saved is None else saved.append
    hooks = Hooks(lambda: task.end_step, lambda end: None, lambda _: None, lambda: False, keep)
    return train_pack(trainer, task, hooks)


def apart(first, second):
    """Return how far the last states of two packs lie apart, relative to their size, and their curves too."""
    distances = [
        np.linalg.norm(value - second.state[name]) / max(np.linalg.norm(second.state[name]), 1e-30)
        for name, value in first.state.items()
        if name.startswith("program.")
    ]
    curves = [
        np.abs(values - second.measurements.metrics[name]).max() for name, values in first.measurements.metrics.items()
    ]
    return max(*distances, *curves)


def same_bits(first, second):
    return all(
        np.array_equal(value, second.state[name]) for name, value in first.state.items() if name != "seconds"
    ) and all(
        values.tobytes() == second.measurements.metrics[name].tobytes()
        for name, values in first.measurements.metrics.items()
    )


@pytest.fixture(scope="module")
def case():
    """One gang of two for all tests of networks; the port that PyTorch takes by default is in use meanwhile."""
    sweep, trainer = digits()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # then another process of these tests has it
            taken.bind(("", 29500))
            taken.listen()
        with closing(GangExecutor(trainer, [24], 1, size=2, timeout=300)) as gang:
            yield sweep, trainer, gang


@pytest.fixture
def shelf(case, tmp_path):
    return Shelf(StudyFolder(tmp_path / "24"), "trial-0", case[0].study(24))


def trained(gang, task, shelf):
    gang.submit("pack", task, shelf)
    end = to_the_end(gang, PATIENCE)[-1]
    assert isinstance(end, Finished), end
    return end.result


def test_one_trial_on_two_processes_comes_to_what_it_does_on_one(case, shelf):
    """Weights, what the optimizer remembers and all curves, after 50 steps in microbatches."""
    sweep, trainer, gang = case
    task = task_of(sweep)

    assert apart(trained(gang, task, shelf), alone(trainer, task)) < 1e-6


def test_resumed_it_is_the_same_bit_for_bit_and_with_another_number_to_rounding(case, shelf):
    sweep, trainer, gang = case
    task = task_of(sweep)
    straight = trained(gang, task, shelf)

    gang.submit("pack", replace(task, pause_step=20), shelf)
    assert to_the_end(gang)[-1] == Paused("pack")
    saved = shelf.read((0,))
    on_two = trained(gang, replace(task, resume=saved), shelf)
    on_one = alone(trainer, replace(task, resume=saved))
    kept = []
    alone(trainer, replace(task, pause_step=20), kept)
    from_one = trained(gang, replace(task, resume=kept[-1]), shelf)

    assert same_bits(on_two, straight)
    assert 0 < apart(on_one, straight) < 1e-6
    assert apart(from_one, straight) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("microbatch_size", ["auto", 16])
@pytest.mark.parametrize("size", [2, 4])
def test_so_it_is_for_every_kind_of_network(tmp_path, size, microbatch_size):
    """Dropout, group norm and ghost norm, on two and four processes, with and without microbatches."""
    sweeps = {name: digits(name, microbatch_size=microbatch_size) for name in MODELS}
    trainer = sweeps["simple_cnn"][1]  # the study says which model it is
    with closing(GangExecutor(trainer, [24], 1, size=size, timeout=300)) as gang:
        for name, (sweep, _) in sweeps.items():
            task = task_of(sweep, learning_rate=0.02 if name == "ghosts" else 0.05)
            shelf = Shelf(StudyFolder(tmp_path / name), "trial-0", task.study)
            distance = apart(trained(gang, task, shelf), alone(trainer, task))

            print(f"{name}, {size} processes, microbatches of {microbatch_size}: {distance:.1e} apart after 50 steps")
            assert distance < 1e-6


def check_kill(case, shelf, chance):
    """Kill a member, whichever it is, after some checkpoints; the trial goes on and comes to the same bits."""
    sweep, _, gang = case
    task = task_of(sweep, checkpoint_seconds=0.01)
    straight, rank = trained(gang, task, shelf), chance.randrange(2)
    gang.submit("pack", task, shelf)
    for _ in range(chance.randrange(1, 4)):
        until(gang, Saved)
    member = gang._workers[0]._members[rank]
    member.process.kill()

    lost = to_the_end(gang)[-1]

    assert isinstance(lost, Lost), lost
    assert lost.why.startswith(f"rank {rank} of 2 (process {member.pid}): exit code -9: it was killed")
    assert same_bits(trained(gang, replace(task, resume=shelf.read((0,))), shelf), straight)


def test_a_member_that_is_killed_costs_what_came_after_the_last_checkpoint(case, shelf):
    check_kill(case, shelf, random.Random(5))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_so_does_any_member_at_any_time(case, shelf, seed):
    check_kill(case, shelf, random.Random(seed))


# Members that stall, fail, or are left behind


@pytest.fixture
def pack(make_nqm, tmp_path):
    study = make_nqm({"sweep.protocol": "full", "sweep.max_steps": 100}).study(16)
    task = PackTask(study, [Point(0, {"learning_rate": 0.1})], study.max_steps, checkpoint_seconds=0.01)
    return task, Shelf(StudyFolder(tmp_path / "16"), "trial-0", study)


@pytest.mark.parametrize("rank", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_a_member_that_stalls_is_named_and_given_up(pack, rank):
    task, shelf = pack
    with closing(GangExecutor(SlowTrainer(seconds=0.1), [16], 1, size=2, timeout=3)) as gang:
        gang.submit("pack", task, shelf)
        until(gang, Saved)
        member = gang._workers[0]._members[rank]
        os.kill(member.pid, signal.SIGSTOP)

        lost = to_the_end(gang)[-1]
        gang.submit("again", Ask(task.study, "yes"))

        assert lost == Lost(
            "pack",
            f"no answer from rank {rank} of 2 (process {member.pid}) for 3 s, engine.worker_timeout_seconds",
        )
        assert to_the_end(gang) == [Finished("again", "yes")]
        assert has_ended(member.pid)


@dataclass(frozen=True)
class FailingOnce(SlowTrainer):
    """Fails in one process of a gang alone, whichever comes there first: where a program is made, or trained."""

    notes: str = ""
    is_made: bool = False

    def _fail_if_first(self):
        try:
            os.close(os.open(self.notes, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        raise TrainerError("this one cannot")

    def program(self, study, points, state=None):
        program = super().program(study, points, state)
        if self.is_made:
            self._fail_if_first()
            return program
        advance = program.advance

        def advance_or_fail(target):
            self._fail_if_first()
            advance(target)

        program.advance = advance_or_fail
        return program


@pytest.mark.parametrize("is_made", [False, True])
def test_what_one_member_fails_by_is_the_failure_of_the_task(pack, tmp_path, is_made):
    task, shelf = pack
    trainer = FailingOnce(notes=str(tmp_path / "notes"), is_made=is_made)
    with closing(GangExecutor(trainer, [16], 1, size=2, timeout=60)) as gang:
        gang.submit("pack", task, shelf)
        end = to_the_end(gang)[-1]
        gang.submit("again", Ask(task.study, "yes"))

        assert isinstance(end, Failed) and str(end.error) == "this one cannot"
        assert to_the_end(gang) == [Finished("again", "yes")]


def test_ends_of_races_are_told_from_gang_to_gang(make_nqm, pack):
    """Two gangs: the one that trains on hears of the other's end."""
    study = make_nqm({"sweep.max_steps": 400, "sweep.goal": "val/risk <= 1e-9"}).study(16)
    shelf = replace(pack[1], study=study)
    with closing(GangExecutor(SlowTrainer(), [16], 2, size=2, timeout=60)) as gangs:
        gangs.submit(1, PackTask(study, [Point(0, {"learning_rate": 0.1})], end_step=400), shelf)
        until(gangs, Progress)
        gangs.submit(2, PackTask(study, [Point(1, {"learning_rate": 0.1})], end_step=10), replace(shelf, name="other"))
        ends = {}
        while len(ends) < 2:
            ends |= {event.key: event for event in gangs.events(PATIENCE) if isinstance(event, Finished)}

    assert gangs.num_workers == 2
    assert ends[1].result.outcomes[0].last_step < 400


PARENT = """
from batchlab.engine.observer import Observer
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.run.executors.gang import GangExecutor
import signal

if __name__ == "__main__":
    gangs = GangExecutor(QuadraticTrainer(), [16], 1, size=3, timeout=60)
    print(*(member.pid for gang in gangs._workers for member in gang._members), flush=True)
    signal.pause()
"""


def test_no_member_outlives_a_parent_that_is_killed(tmp_path):
    script, temporary = tmp_path / "parent.py", tmp_path / "temporary"
    script.write_text(PARENT)
    temporary.mkdir()
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=environment) as process:
        pids = [int(word) for word in process.stdout.readline().split()]
        process.kill()

    assert len(pids) == 3
    assert all(has_ended(pid) for pid in pids)
    assert list(temporary.iterdir()) == []


# Whole runs


class Saying(SilentDisplay):
    def __init__(self):
        self.said = []

    def say(self, sentence):
        self.said.append(sentence)


@pytest.mark.slow
def test_a_sweep_on_gangs_comes_to_what_it_does_on_single_processes(tmp_path):
    """And goes on with another number of workers: it is said once, and the curves are the same to rounding."""
    several, _ = digits(workers_per_trial=2)
    single, _ = digits()
    display, again = Saying(), Saying()
    run_sweep(single, tmp_path / "single", num_workers=2)
    run_sweep(several, tmp_path / "lab", num_workers=4, only=range(1))

    run_sweep(single, tmp_path / "lab", num_workers=2, display=display)
    run_sweep(single, tmp_path / "lab", num_workers=2, display=again)

    assert [sentence for sentence in display.said if "workers_per_trial" in sentence] == [
        "engine.workers_per_trial was 2 and is 1 now: what is finished stays, and what is not goes on with the same "
        "results, to rounding."
    ]
    assert again.said == []
    curves = [Lab.open(tmp_path / lab).results(single).results[0].measurements for lab in ("single", "lab")]
    assert curves[0].step.tolist() == curves[1].step.tolist()
    for name, values in curves[0].metrics.items():
        assert np.abs(values - curves[1].metrics[name]).max() < 1e-6


# What is refused, before anything is trained


def start(sweep, trainer, kind="local", num_workers=4):
    return choose_executor(kind, sweep, trainer, num_workers=num_workers)


def test_more_workers_than_examples_are_refused_before_anything_is_trained():
    sweep, trainer = digits(workers_per_trial=25)

    with pytest.raises(SpecError, match="A batch of 24 examples cannot be shared by 25 workers: take fewer"):
        start(sweep, trainer, num_workers=25)


def test_so_are_fewer_processes_than_a_trial_needs():
    sweep, trainer = digits(workers_per_trial=4)

    with pytest.raises(InputError, match="engine.workers_per_trial = 4 needs 4 processes .*and there are 3"):
        start(sweep, trainer, num_workers=3)


def test_ray_is_for_one_worker_a_trial():
    sweep, trainer = digits(workers_per_trial=2)

    with pytest.raises(InputError, match='Executor "ray": engine.workers_per_trial = 2 is for one machine'):
        start(sweep, trainer, kind="ray")


def test_a_trainer_that_knows_no_exchange_trains_on_one_worker(scripted):
    sweep, _ = digits(workers_per_trial=2)

    with pytest.raises(SpecError, match="engine.workers_per_trial = 2: ScriptedTrainer trains each trial on one"):
        start(sweep, scripted())


def test_a_network_that_was_written_at_a_prompt_trains_here(scripted):
    class Stays(scripted):
        stays_here = True

    with pytest.raises(InputError, match="written at a prompt trains in this process; save it in a file"):
        start(digits(workers_per_trial=2)[0], Stays())


class Watching(Observer):
    metrics = ("train/nothing",)

    def report(self, state):
        return {}


def test_observers_see_one_worker(tmp_path):
    sweep, _ = digits(workers_per_trial=2)

    with pytest.raises(SpecError, match="Observers see the gradients of one worker"):
        run_sweep(sweep, tmp_path / "lab", observers=[Watching()])
    assert not (tmp_path / "lab").exists()


def test_the_default_number_of_processes_makes_at_least_one_gang(monkeypatch):
    made = []
    monkeypatch.setattr(
        "batchlab.run.executors.choose.GangExecutor", lambda *given, **named: made.append((given[2], named))
    )
    monkeypatch.setattr("batchlab.run.executors.choose.usable_cores", lambda: 7)
    for size in (2, 3, 24):
        sweep, trainer = digits(workers_per_trial=size)
        start(sweep, trainer, num_workers=None)([24])

    assert made == [
        (count, {"size": size, "timeout": 600.0, "link": None}) for count, size in ((3, 2), (2, 3), (1, 24))
    ]
