"""Programs as loops: what a command may say, how it is run, read and ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from batchlab.engine.base import Point
from batchlab.errors import SpecError, TrainerError, TrialError
from batchlab.loops import child
from batchlab.loops.base import trial_seed
from batchlab.loops.command import CommandTrainer, check_command
from batchlab.loops.journal import Journal

ALL = "{batch_size} {seed} {learning_rate}"


@pytest.fixture
def follow(make_study, tmp_path):
    """Return a function that runs a program of Python and gives its reports, at most so many."""

    def run(code, most=100, **workload):
        (tmp_path / "train.py").write_text(code)
        study = make_study(f"{sys.executable} {tmp_path / 'train.py'} {ALL} {{checkpoint}}", **workload)
        trainer, place = CommandTrainer(study.workload), tmp_path / "place"
        Journal(place, study, 3).begin([])
        reports = trainer.reports(study, Point(3, {"learning_rate": 0.25}), place, 0, 0)
        found = []
        for report in reports:
            if report is not None:
                found.append((report.step, dict(report.metrics)))
            if len(found) >= most:
                break
        reports.close()
        return found, trainer

    return run


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (f"true {ALL} {{momentum}}", 'workload.command: Unknown placeholder "momentum"'),
        ("true {batch_size} {seed}", "workload.command does not use {learning_rate}, which differs between trials"),
        ("true {learning_rate} {seed}", "workload.command does not use {batch_size}"),
        ("true {learning_rate} {batch_size}", "workload.command does not use {seed}"),
        (f"no-such-program {ALL}", "workload.command: there is no program no-such-program"),
        (f"{{seed}} {ALL}", "workload.command: there is no program {seed}"),
        (f"true 'open {ALL}", "no closing quotation"),
        ("   ", "workload.command is empty"),
    ],
)
def test_a_command_that_cannot_be_run_is_one_sentence(make_study, command, sentence):
    study = make_study(command)

    with pytest.raises(SpecError) as caught:
        check_command(study.workload, study)

    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("workload", "sentence"),
    [
        ({"pattern": {"step": "([0-9]+)"}}, "give one for step, and one for val/loss"),
        ({"pattern": {"step": "([0-9]+", "val/loss": "(.*)"}}, "workload.pattern.step = ([0-9]+: missing )"),
        ({"pattern": {"step": "[0-9]+", "val/loss": "(.*)"}}, "has 0 groups: put one around the number"),
        ({"metrics_file": "{folder}/m.jsonl"}, 'Unknown placeholder "folder"'),
        (
            {"metrics_file": "m.jsonl"},
            "metrics_file = m.jsonl is the same file for several trials: put in {checkpoint}",
        ),
        ({"metrics_file": "{seed}.jsonl"}, "is the same file for several trials"),
        ({"space": ("learning_rate", "seed")}, "search_space.seed: every loop is told its seed"),
    ],
)
def test_what_else_is_wrong_is_one_sentence(make_study, workload, sentence):
    study = make_study(f"true {ALL}", **workload)

    with pytest.raises(SpecError) as caught:
        check_command(study.workload, study)

    assert sentence in str(caught.value)


def test_a_program_is_told_its_trial_and_its_lines_are_read(follow, tmp_path):
    code = """
import json, sys
print("begins"); print(json.dumps({"step": 1, "val/loss": float(sys.argv[3]), "size": int(sys.argv[1])}))
print('{"step": 2, "val/loss": 0.5}', end="")
"""
    found, _ = follow(code)

    assert found == [(1, {"val/loss": 0.25, "size": 8}), (2, {"val/loss": 0.5})]
    assert (tmp_path / "place" / "output.txt").read_text().startswith("begins\n{")


def test_no_shell_sees_the_command(make_study, tmp_path):
    study = make_study(f"{sys.executable} -c 'import sys; print(sys.argv)' {ALL} '$HOME; touch x' `ls` *")
    trainer, place = CommandTrainer(study.workload), tmp_path / "place"
    Journal(place, study, 0).begin([])
    list(trainer.reports(study, Point(0, {"learning_rate": 0.1}), place, 0, 0))

    assert "'$HOME; touch x', '`ls`', '*'" in (place / "output.txt").read_text()


def test_reports_may_come_by_a_pattern_or_in_a_file(follow):
    by_pattern, _ = follow("print('it 7 loss 0.5')", pattern={"step": "it ([0-9]+)", "val/loss": "loss (.*)"})
    in_file, _ = follow(
        "import sys; open(sys.argv[4] + '/m.jsonl', 'w').write('{\"step\": 3, \"val/loss\": 1}')",
        metrics_file="{checkpoint}/m.jsonl",
    )

    assert by_pattern == [(7, {"val/loss": 0.5})]
    assert in_file == [(3, {"val/loss": 1.0})]


@pytest.mark.parametrize("mode", ["w", "a"])
def test_a_file_that_an_earlier_attempt_left_is_not_read(follow, tmp_path, mode):
    """One that is written anew, and soon is longer than before, looks like one that was appended to."""
    code = """
import sys
with open(f"{folder}/{sys.argv[1]}-{sys.argv[2]}.jsonl", "{mode}") as file:
    for step in range(1, {end}):
        print('{"step": %d, "val/loss": 1}' % step, file=file)
"""
    code = code.replace("{folder}", str(tmp_path)).replace("{mode}", mode)
    name = f"{tmp_path}/{{batch_size}}-{{seed}}.jsonl"
    follow(code.replace("{end}", "3"), metrics_file=name)

    found, _ = follow(code.replace("{end}", "6"), metrics_file=name)

    assert [step for step, _ in found] == [1, 2, 3, 4, 5]


def test_a_metric_that_is_no_number_is_told_and_other_words_are_left_out(follow):
    found, _ = follow('print(\'{"step": 1, "val/loss": 0.5, "system/host": "here"}\')')
    assert found == [(1, {"val/loss": 0.5})]

    with pytest.raises(TrainerError, match="val/loss = abc at step 5 is no number"):
        follow('print(\'{"step": 5, "val/loss": "abc"}\')')


def test_a_folder_in_the_place_of_the_metrics_file_is_told(follow, make_study, tmp_path):
    (tmp_path / f"8-{trial_seed(make_study(), 3)}.jsonl").mkdir()

    with pytest.raises(TrialError, match=r"\.jsonl is in the way of workload\.metrics_file: "):
        follow("", metrics_file=f"{tmp_path}/{{batch_size}}-{{seed}}.jsonl")


def test_a_program_that_fails_is_told_with_its_last_line(follow):
    with pytest.raises(TrialError, match=r"Trial 3 at batch size 8: .* ended with exit code 1; its last line: .*Oh"):
        follow("raise SystemExit('first\\nOh no')")


def test_a_line_that_cannot_be_is_told(follow):
    with pytest.raises(TrainerError, match=r"Trial 3 at batch size 8: in .*: step = -2 is no whole number"):
        follow("print('{\"step\": -2}')")


def test_a_program_ends_with_all_that_it_started_when_its_race_is_over(follow, tmp_path):
    code = f"""
import subprocess, sys, time
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid,
      file=open({str(tmp_path / "pid")!r}, "w"), flush=True)
print('{{"step": 1, "val/loss": 1}}')
time.sleep(600)
"""
    found, trainer = follow(code, most=1)

    assert len(found) == 1 and trainer.remark is None
    _wait_for_end(int((tmp_path / "pid").read_text()))


def test_a_program_that_ignores_sigterm_is_killed_and_that_is_told(follow, monkeypatch):
    monkeypatch.setattr(child, "GRACE_SECONDS", 0.3)
    code = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('{"step": 1, "val/loss": 1}', flush=True)
time.sleep(600)
"""
    _, trainer = follow(code, most=1)

    assert "did not end within 0.3 s of SIGTERM and was killed" in trainer.remark


def test_a_program_hears_sigterm_also_from_a_worker_that_does_not(follow, tmp_path):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        _, trainer = follow('import time; print(\'{"step": 1, "val/loss": 1}\'); time.sleep(600)', most=1)
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    assert trainer.remark is None


def test_processors_and_gpus_are_given_by_the_spec(make_study, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5")
    code = "import os; print(os.environ['OMP_NUM_THREADS'], os.environ['CUDA_VISIBLE_DEVICES'])"
    study = make_study(f'{sys.executable} -c "{code}" {ALL}', engine={"cpus_per_trial": 3, "gpus_per_trial": 2})
    trainer, place = CommandTrainer(study.workload), tmp_path / "place"
    Journal(place, study, 0).begin([])
    list(trainer.reports(study, Point(0, {"learning_rate": 0.1}), place, 1, 0))

    assert (place / "output.txt").read_text() == "3 2,3\n"


def _wait_for_end(process):
    """Wait until a process is gone, or a zombie that nobody has asked for yet; a minute is never needed."""
    for _ in range(600):
        try:
            os.kill(process, 0)
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.1)
    raise AssertionError(f"process {process} is still there")
