"""One study being filled, in any order of its packs and with any number of restarts: always the same outcome."""

from __future__ import annotations

import random

import pytest

from batchlab.core.trial import Status
from batchlab.run.pack import Hooks, train_pack
from batchlab.run.study_run import StudyRun
from batchlab.store.study_folder import StudyFolder


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def obvious_race(study, num_points, goal_at, diverges_at):
    """Return the rules of the race, written out: the end, and by trial its status, last row and round.

    A trial meets the goal at the first evaluated step from `goal_at` on that comes before it diverges.
    """
    evaluated = list(study.evaluation.steps(study.max_steps))
    goal_steps, status, rounds, end = {}, {}, {}, study.max_steps
    for trial_id in range(num_points):
        met = [step for step in evaluated if step >= goal_at.get(trial_id, 10**9)]
        if met and met[0] < diverges_at.get(trial_id, 10**9):
            goal_steps[trial_id] = met[0]
    for number in range(1, num_points + 1):
        missing = study.trials - sum(status[trial_id] is Status.COMPLETE for trial_id in status)
        for trial_id in range(len(status), min(len(status) + missing, num_points)):
            status[trial_id], rounds[trial_id] = Status.COMPLETE, number
        for trial_id in sorted(goal_steps, key=lambda trial_id: goal_steps[trial_id]):
            own_end = study.end_step(goal_steps[trial_id])
            if status.get(trial_id) is Status.COMPLETE and diverges_at.get(trial_id, 10**9) > own_end:
                end = own_end
                break
        for trial_id in status:
            if diverges_at.get(trial_id, 10**9) <= end:
                status[trial_id] = Status.INFEASIBLE
    rows = {
        trial_id: [step for step in evaluated if step <= end and step < diverges_at.get(trial_id, 10**9)]
        for trial_id in status
    }
    return end, status, rounds, rows


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(i, marks=pytest.mark.slow) for i in range(12, 25))])
def test_a_study_follows_the_rules_of_the_race_whatever_happens_on_the_way(
    make_scripted, scripted, tmp_path, fill, outcome_of, seed
):
    """Random fates; packs of any size in any order, ends unheard, the process thrown away between packs."""
    chance = random.Random(seed)
    trials = chance.randint(1, 6)
    points = trials + chance.randint(0, 8)
    settings = {"trials": trials, "max_attempts": points, "race_factor": chance.choice([1.0, 1.5, 2.0])}
    study = make_scripted({f"sweep.{name}": value for name, value in settings.items()}).study(8)
    goal_at = {i: chance.randint(0, 100) for i in range(points) if chance.random() < 0.5}
    diverges_at = {i: chance.randint(1, 130) for i in range(points) if chance.random() < 0.5}
    trainer = scripted(goal_at, diverges_at)
    end, status, rounds, rows = obvious_race(study, points, goal_at, diverges_at)

    fill(study, tmp_path / "straight", trainer, pack_size=3)
    expected = outcome_of(tmp_path / "straight")

    assert expected[0] == end
    assert {trial_id: each for trial_id, each, *_ in expected[1]} == status
    assert {trial_id: number for trial_id, _, _, _, number, _ in expected[1]} == rounds
    assert expected[2] == [(trial_id, step) for trial_id in sorted(rows) for step in rows[trial_id]]

    for variant in range(3):
        path = tmp_path / str(variant)
        fill(study, path, trainer, chance.randint(1, 4), chance, restarts=0.4)

        assert outcome_of(path) == expected


@pytest.mark.parametrize("seed", range(10))
def test_the_race_and_the_full_protocol_have_the_same_winner(make_scripted, scripted, tmp_path, seed, fill):
    """Where nobody diverges: the same steps to the goal, of the same trial, with fewer steps trained."""
    chance = random.Random(seed)
    goal_at = {i: chance.randint(1, 60) for i in range(6) if chance.random() < 0.7} | {0: 60}
    answers, trained = [], []
    for protocol in ("race", "full"):
        study = make_scripted({"sweep.trials": 6, "sweep.protocol": protocol}).study(8)
        run = fill(study, tmp_path / protocol, scripted(goal_at), pack_size=2)
        rows = StudyFolder(tmp_path / protocol).result().measurements
        met = rows.where(rows.metrics["val/loss"] < 0.5)
        answers.append(min(zip(met.step.tolist(), met.trial_id.tolist(), strict=True)))
        trained.append(run.record.trained_steps)

    assert answers[0] == answers[1]
    assert trained[0] < trained[1] == 600


# By hand


def test_points_are_drawn_once_and_kept(make_scripted, tmp_path):
    study, folder = make_scripted().study(8), StudyFolder(tmp_path / "8")
    first = StudyRun(study, folder)

    assert len(first.record.points) == 20  # five for each of the four trials
    assert StudyRun(study, folder).record.points == first.record.points


def test_a_task_carries_the_points_and_fixed_metaparameters_of_its_trials(make_scripted, tmp_path):
    study = make_scripted({"workload.optimizer": {"name": "script", "momentum": 0.9}}).study(8)
    run = StudyRun(study, StudyFolder(tmp_path / "8"))
    run.choose_pack_size(2)
    run.take_task()

    name, task = run.take_task()

    assert name == "trials-2-3"
    assert [point.trial_id for point in task.points] == [2, 3]
    assert [point.metaparameters for point in task.points] == [
        {"momentum": 0.9, **point} for point in run.record.points[2:4]
    ]
    assert run.shelf(name).path == tmp_path / "8" / "checkpoints" / "trials-2-3.safetensors"
    assert run.take_task() is None


def test_the_pack_size_of_a_study_stays(make_scripted, tmp_path):
    study, folder = make_scripted().study(8), StudyFolder(tmp_path / "8")
    StudyRun(study, folder).choose_pack_size(3)

    resumed = StudyRun(study, folder)

    assert resumed.pack_size == 3


def test_a_resumed_study_knows_the_end_that_a_finished_pack_has_set(make_scripted, scripted, tmp_path):
    """Otherwise a pack without a winner would train to its budget after a restart."""
    study, folder, trainer = make_scripted().study(8), StudyFolder(tmp_path / "8"), scripted(goal_at={0: 20})
    run = StudyRun(study, folder)
    run.choose_pack_size(2)
    name, task = run.take_task()
    assert task.end_step == 100
    hooks = Hooks(lambda: task.end_step, lambda end: None, lambda *_: None, lambda: False, run.shelf(name).save)
    run.keep_part(name, train_pack(trainer, task, hooks))

    resumed = StudyRun(study, folder)
    resumed.open_round()
    name, task = resumed.take_task()

    assert (name, task.end_step) == ("trials-2-3", 30)


def test_a_trial_record_tells_how_the_trial_ended(make_scripted, scripted, tmp_path, fill):
    """Of four trials 0 wins at 40, 1 diverges after its row at 20, 2 diverges when the race (60) is over."""
    study = make_scripted().study(8)
    trainer = scripted(goal_at={0: 40}, diverges_at={1: 25, 2: 65})

    run = fill(study, tmp_path / "8", trainer, pack_size=4)
    trials = StudyFolder(tmp_path / "8").result().trials

    assert [(trial.status, trial.last_step, trial.diverged_step, trial.round) for trial in trials] == [
        (Status.COMPLETE, 60, None, 1),
        (Status.INFEASIBLE, 20, 25, 1),
        (Status.COMPLETE, 60, None, 1),
        (Status.COMPLETE, 60, None, 1),
        (Status.COMPLETE, 60, None, 2),
    ]
    assert run.record.counts == {Status.COMPLETE: 4, Status.INFEASIBLE: 1, Status.INCOMPLETE: 0}
    assert run.record.note is None
    assert trials[0].environment["packages"]["numpy"]
    assert sum(trial.wall_seconds for trial in trials) == pytest.approx(run.record.wall_seconds)


def test_every_stored_trial_ends_with_its_last_row(make_scripted, scripted, tmp_path, fill):
    trainer = scripted(goal_at={0: 40}, diverges_at={1: 25, 2: 65, 5: 1})
    fill(make_scripted().study(8), tmp_path / "8", trainer, pack_size=2)
    result = StudyFolder(tmp_path / "8").result()

    for trial in result.trials:
        assert result.measurements.curve(trial.trial_id).steps[-1] == trial.last_step


def test_points_that_run_out_are_noted(make_scripted, scripted, tmp_path, fill):
    study = make_scripted({"sweep.trials": 3, "sweep.max_attempts": 5}).study(8)

    run = fill(study, tmp_path / "8", scripted(diverges_at={0: 5, 2: 5, 4: 5}), pack_size=4)

    assert run.record.note == "2 of 3 trials complete: all 5 points were tried, 3 diverged"
    assert run.record.counts == {Status.COMPLETE: 2, Status.INFEASIBLE: 3, Status.INCOMPLETE: 0}


@pytest.mark.parametrize("moment", ["write_measurements", "trials_json", "save_record", "tidy"])
def test_a_kill_while_the_outcome_is_stored_ends_well(
    make_scripted, scripted, tmp_path, monkeypatch, moment, fill, outcome_of
):
    from batchlab.store import study_folder

    study, trainer = make_scripted().study(8), scripted(goal_at={0: 20}, diverges_at={1: 10})
    fill(study, tmp_path / "straight", trainer, pack_size=2)
    home = {"write_measurements": study_folder.parquet, "trials_json": study_folder}.get(moment, StudyFolder)
    original = getattr(home, moment)

    def kill_at_the_end(*arguments, **options):
        if moment == "tidy" or (tmp_path / "8" / "parts" / "trials-4.parquet").exists():
            raise Killed
        return original(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(home, moment, kill_at_the_end)
        with pytest.raises(Killed):
            fill(study, tmp_path / "8", trainer, pack_size=2)
    fill(study, tmp_path / "8", trainer, pack_size=2)

    assert outcome_of(tmp_path / "8") == outcome_of(tmp_path / "straight")
    assert sorted(path.name for path in (tmp_path / "8").iterdir()) == [
        *("measurements.parquet", "study.json", "trials.json"),
    ]
