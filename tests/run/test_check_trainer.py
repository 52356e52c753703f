"""A user's own trainer is tried in a worker process before it is run: scripts, prompts and classes of every kind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import batchlab
from batchlab.errors import SpecError, TrainerError, TrialError
from batchlab.run import check_trainer as module
from batchlab.run.check_trainer import check_trainer
from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab

OWN = """
import numpy as np
import batchlab

SWEEP = {
    "name": "own",
    "workload": {"dataset": "own", "model": "own", "optimizer": "own"},
    "sweep": {"batch_sizes": [8], "trials": 2, "max_steps": 5, "goal": "val/loss < 0.5"},
    "search_space": {"learning_rate": {"min": 0.1, "max": 0.5}},
}

class Program:
    def __init__(self, points):
        self.step, self.diverged, self.trial_ids = 0, {}, np.array([point.trial_id for point in points])

    def evaluate(self):
        return {"val/loss": np.full(len(self.trial_ids), 0.9 ** self.step)}

    def advance(self, target):
        self.step = target

    def state(self):
        return {}

class Own:
    def metrics(self, study):
        return ("val/loss",)

    def program(self, study, points, state=None):
        return Program(points)

def main():
    sweep = batchlab.Sweep.parse(SWEEP, "own")
    try:
        batchlab.run_sweep(sweep, "lab", trainer=Own(), num_workers=2)
    except batchlab.BatchlabError as error:
        print(type(error).__name__, error)
    else:
        print("trained")
"""


def run_python(folder, *arguments, **options):
    """Run Python with the batchlab under test; return what it printed, and said."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, **options)
    return done.stdout, done.stderr


def run_script(folder, text):
    (folder / "study.py").write_text(text)
    return run_python(folder, "study.py")


def test_a_script_with_its_guard_trains(tmp_path):
    assert run_script(tmp_path, OWN + 'if __name__ == "__main__":\n    main()\n') == ("trained\n", "")


def test_a_script_without_a_guard_is_told_in_one_sentence(tmp_path):
    printed, said = run_script(tmp_path, OWN + "main()\n")

    assert printed == (
        'InputError The script that starts the run has no `if __name__ == "__main__":` guard: worker processes import '
        "the script and would start the run again. Put what starts it below that line.\n"
    )
    assert said == ""
    assert not (tmp_path / "lab").exists()


@pytest.mark.slow
def test_a_built_in_workload_without_a_guard_is_told_as_well(tmp_path):
    script = """
import batchlab

sweep = batchlab.load_sweep("nqm", ["sweep.batch_sizes=[4]", "sweep.max_steps=10"])
try:
    batchlab.run_sweep(sweep, "lab", num_workers=2)
except batchlab.BatchlabError as error:
    print(error)
"""
    printed, said = run_script(tmp_path, script)

    assert printed.startswith('The script that starts the run has no `if __name__ == "__main__":` guard')
    assert printed.count("\n") == 1
    assert said == ""


@pytest.mark.slow
def test_a_large_trainer_without_a_guard_is_told_as_well(tmp_path):
    """The worker dies before it has read all that it is sent."""
    large = OWN.replace("class Own:", "class Own:\n    def __init__(self):\n        self.data = bytes(10**7)\n")
    printed, said = run_script(tmp_path, large + "main()\n")

    assert printed.startswith("InputError The script that starts the run has no")
    assert said == ""


def test_a_script_that_workers_cannot_import_is_told_with_what_it_raised(tmp_path):
    once = 'open("once", "x").close()\n'
    printed, said = run_script(tmp_path, once + OWN + 'if __name__ == "__main__":\n    main()\n')

    assert printed.startswith("TrialError A worker process could not start (exit code 1): it imports the script")
    assert "FileExistsError: [Errno 17] File exists: 'once'" in printed
    assert said == ""


@pytest.mark.slow
def test_a_script_from_stdin_is_told(tmp_path):
    printed, said = run_python(tmp_path, "-", input=OWN + "main()\n")

    assert printed == (
        "InputError Worker processes import the script that starts the run, but <stdin> is no file: save it in one.\n"
    )
    assert said == ""


def test_a_class_from_a_prompt_or_a_notebook_cell_is_told(tmp_path):
    """There, as with -c, `__main__` is no file that a worker could import."""
    printed, said = run_python(tmp_path, "-c", OWN + "main()\n")

    assert printed.startswith("TrainerError A worker process cannot make the trainer (Can't get attribute 'Own' on ")
    assert "define its class in a module file that workers can import, not in a notebook cell" in printed
    assert printed.count("\n") == 1
    assert said == ""


@pytest.mark.slow
def test_a_class_from_a_file_serves_a_prompt(tmp_path):
    (tmp_path / "own.py").write_text(OWN)

    assert run_python(tmp_path, "-c", "import own\nown.main()\n") == ("trained\n", "")


# In this process: what cannot be sent


@pytest.fixture
def study(make_scripted):
    return make_scripted().study(8)


def refusal(trainer, study):
    with pytest.raises(TrainerError) as caught:
        check_trainer(trainer, study)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_good_trainer_passes_and_leaves_no_process_behind(scripted, study, monkeypatch):
    executors, original = [], module.make_executor
    monkeypatch.setattr(module, "make_executor", lambda *a, **k: executors.append(original(*a, **k)) or executors[-1])

    check_trainer(scripted(goal_at={0: 20}), study)

    ((worker,),) = [executor._workers for executor in executors]
    assert worker.process.exitcode is not None


def test_it_is_a_public_name():
    assert batchlab.check_trainer is check_trainer


def test_a_class_inside_a_function_cannot_be_sent(scripted, study):
    class Local(scripted):
        pass

    sentence = refusal(Local(), study)

    assert sentence.startswith("The trainer cannot be sent to worker processes (Can't pickle local object ")
    assert "define its class at the top of a module, not inside a function" in sentence


@pytest.mark.parametrize("load", [lambda: 3, threading.Lock()], ids=["lambda", "lock"])
def test_what_cannot_be_pickled_is_told(scripted, study, load):
    sentence = refusal(scripted(goal_at={0: load}), study)

    assert sentence.startswith("The trainer cannot be sent to worker processes (")
    assert "keep lambdas, open files and locks out of it." in sentence


class Unopened:
    """It cannot be made again elsewhere."""

    def metrics(self, study):
        return ("val/loss",)

    def program(self, study, points, state=None):
        raise AssertionError

    def __setstate__(self, state):
        raise RuntimeError("no licence on this machine")

    def __getstate__(self):
        return {"key": 3}


def test_a_trainer_that_cannot_be_made_in_a_worker_is_told(study):
    assert "A worker process cannot make the trainer (no licence on this machine)" in refusal(Unopened(), study)


class Standing(Unopened):
    """Its programs do not move."""

    def __setstate__(self, state):
        pass

    def program(self, study, points, state=None):
        return Still(points)


class Still:
    def __init__(self, points):
        self.step, self.diverged, self.trial_ids = 0, {}, np.array([point.trial_id for point in points])

    def evaluate(self):
        return {"val/loss": np.ones(len(self.trial_ids))}

    def advance(self, target):
        pass

    def state(self):
        return {}


def test_a_breach_in_a_worker_comes_back_as_its_sentence(study):
    assert refusal(Standing(), study).startswith("advance(2) left `step` at 0")


class Exiting(Standing):
    def program(self, study, points, state=None):
        os._exit(3)


def test_a_trainer_that_ends_its_process_is_told_with_the_exit_code(study):
    with pytest.raises(TrialError) as caught:
        check_trainer(Exiting(), study)

    assert str(caught.value) == (
        "The worker checking your trainer at batch size 8 died 3 times in a row (exit code 3: it ended itself, as "
        "`os._exit` does, which training code must not do)."
    )


class Leaving(Standing):
    def program(self, study, points, state=None):
        sys.exit(3)


def test_a_trainer_that_calls_sys_exit_is_told_so(study):
    assert refusal(Leaving(), study).startswith(
        "At batch size 8, while checking your trainer: sys.exit(3) was called, which would end the worker."
    )


class Crashing(Standing):
    def program(self, study, points, state=None):
        os.abort()


def test_a_crash_is_told_by_its_signal_and_not_as_a_lack_of_memory(study):
    with pytest.raises(TrialError, match=r"\(exit code -6: a crash, SIGABRT\)\."):
        check_trainer(Crashing(), study)


# Before a sweep


def test_a_sweep_with_such_a_trainer_writes_nothing(make_scripted, tmp_path):
    with pytest.raises(TrainerError, match="left `step` at 0"):
        run_sweep(make_scripted(), tmp_path / "lab", trainer=Standing(), num_workers=1)

    assert not (tmp_path / "lab").exists()


class Late(Unopened):
    """Keeps the contract until step 20: from there one of its trials measures no number."""

    def __init__(self, value):
        self.value = value

    def __getstate__(self):
        return self.value

    def __setstate__(self, state):
        self.value = state

    def program(self, study, points, state=None):
        return LateProgram(points, self.value)


class LateProgram(Still):
    def __init__(self, points, value):
        super().__init__(points)
        self.value = value

    def evaluate(self):
        return {"val/loss": np.where((self.trial_ids == 1) & (self.step >= 20), self.value, 1.0)}

    def advance(self, target):
        self.step = target


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_breach_that_shows_late_ends_the_run_with_its_sentence(make_scripted, tmp_path, value):
    words = rf'^LateProgram\.evaluate\(\)\["val/loss"\] is {value} at step 20 for trial 1 \(batch size 8\): [^\n]*$'
    with pytest.raises(TrainerError, match=words):
        run_sweep(make_scripted(), tmp_path / "lab", trainer=Late(value), num_workers=1)


class Choosy:
    """Refuses one batch size."""

    def __init__(self, inner):
        self.inner = inner

    def metrics(self, study):
        return self.inner.metrics(study)

    def program(self, study, points, state=None):
        return self.inner.program(study, points, state)

    def check(self, study):
        if study.batch_size == 32:
            raise ValueError("32 is too many")


def test_every_study_is_shown_to_the_trainers_check(make_scripted, scripted, tmp_path):
    sweep = make_scripted({"sweep.batch_sizes": [8, 16, 32]})

    with pytest.raises(SpecError, match="Choosy.check refuses batch size 32: 32 is too many"):
        run_sweep(sweep, tmp_path / "lab", trainer=Choosy(scripted()), num_workers=1)
    assert not (tmp_path / "lab").exists()


class Packed(Choosy):
    def pack_size(self, study):
        return 3


def test_the_trainers_pack_size_is_used(make_scripted, scripted, tmp_path):
    sweep = make_scripted({"engine": {}})

    run_sweep(sweep, tmp_path / "lab", trainer=Packed(scripted(goal_at={0: 20})), num_workers=1)

    assert Lab.open(tmp_path / "lab").study_folder("scripted", 8).record().pack_size == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"search_space.wieght_decay": {"values": [0.1]}}, 'Unknown metaparameter of .* "wieght_decay"'),
        ({"search_space.learning_rate": {"values": [-0.1]}}, "learning_rate = -0.1 must be above 0"),
        ({"search_space": {"learning_rate": {"values": [0.1]}}}, "metaparameter `momentum` of .* has no value"),
        ({"sweep.goal": "val/loss < 1"}, 'Unknown metric "val/loss". Known: val/classification_error'),
    ],
)
def test_a_sweep_that_was_made_in_python_is_checked_like_any_other(make_digits, tmp_path, changes, message):
    with pytest.raises(SpecError, match=message):
        run_sweep(make_digits(changes), tmp_path / "lab", num_workers=1)
    assert not (tmp_path / "lab").exists()
