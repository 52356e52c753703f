"""A study that grows is the study that would have been, had it been begun at that size."""

from __future__ import annotations

import random

import pytest

from batchlab.core.growth import fixed_digest
from batchlab.engine.checks.study import knows_budget
from batchlab.errors import LabError, SpecError
from batchlab.optim.registry import SCHEDULES, ScheduleEntry
from batchlab.run.pack import Hooks, train_pack
from batchlab.run.run_sweep import run_sweep
from batchlab.run.study_run import StudyRun
from batchlab.store.lab import Lab
from batchlab.store.study_folder import StudyFolder


def fates(chance, points):
    """Return for each of some points where it meets the goal and where it diverges, each for half of them."""
    goal_at = {i: chance.randint(0, 100) for i in range(points) if chance.random() < 0.5}
    diverges_at = {i: chance.randint(1, 130) for i in range(points) if chance.random() < 0.5}
    return goal_at, diverges_at


def train_here(trainer, task, shelf):
    """Train a pack in this process, with no other beside it."""
    hooks = Hooks(lambda: task.end_step, lambda end: None, lambda *_: None, lambda: False, shelf.save)
    return train_pack(trainer, task, hooks)


def settings(chance, least=None):
    """Return a search; with `least`, one that is at least as large in everything."""
    least = least or {"trials": 1, "max_attempts": 1, "race_factor": 1.0, "max_steps": 45, "protocol": "race"}
    trials = least["trials"] + chance.randint(0, 4)
    protocol = "full" if least["protocol"] == "full" or chance.random() < 0.15 else "race"
    return {
        "trials": trials,
        "max_attempts": max(trials, least["max_attempts"]) + chance.randint(0, 5),
        "race_factor": chance.choice([factor for factor in (1.0, 1.2, 1.5, 2.0) if factor >= least["race_factor"]]),
        "max_steps": least["max_steps"] + chance.choice([0, 0, 5, 30]),
        "protocol": protocol,
    }


@pytest.mark.parametrize("keep_states", [False, True])
@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(i, marks=pytest.mark.slow) for i in range(12, 40))])
def test_a_grown_study_equals_one_begun_at_that_size(
    make_scripted, scripted, tmp_path, fill, outcome_of, seed, keep_states
):
    """Random fates and sizes, grown twice, thrown away between packs: the same trials, statuses, rounds and rows."""
    chance = random.Random(seed)
    sizes = [settings(chance)]
    sizes += [settings(chance, sizes[0])]
    sizes += [settings(chance, sizes[1])]
    trainer = scripted(*fates(chance, 40))
    pack_size = chance.randint(1, 4)
    studies = [make_scripted({f"sweep.{name}": value for name, value in size.items()}).study(8) for size in sizes]

    for study in studies:
        fill(study, tmp_path / "8", trainer, pack_size, chance, restarts=0.3, keep_states=keep_states)
        fill(study, tmp_path / "fresh", trainer, pack_size)

        assert outcome_of(tmp_path / "8") == outcome_of(tmp_path / "fresh")
        for path in (tmp_path / "fresh").iterdir():
            path.unlink()


@pytest.mark.parametrize(("keep_states", "trained"), [(False, 4 * 45 + 4 * 75), (True, 4 * 75)])
def test_updates_are_counted_as_often_as_they_were_computed(
    make_scripted, scripted, tmp_path, fill, keep_states, trained
):
    changes = {"sweep.trials": 4, "sweep.protocol": "full"}
    small, large = (make_scripted({**changes, "sweep.max_steps": steps}).study(8) for steps in (45, 75))
    for study in (small, large):
        fill(study, tmp_path / "8", scripted(), pack_size=2, keep_states=keep_states)

    assert StudyFolder(tmp_path / "8").record().trained_steps == trained


def test_an_unfinished_study_grows_in_its_place(make_scripted, scripted, tmp_path, fill, outcome_of):
    trainer, folder = scripted({1: 40, 6: 20}, {0: 30}), StudyFolder(tmp_path / "8")
    small, large = (make_scripted({"sweep.trials": trials}).study(8) for trials in (4, 9))
    StudyRun(small, folder).choose_pack_size(2)

    fill(large, tmp_path / "8", trainer, pack_size=2)
    fill(large, tmp_path / "fresh", trainer, pack_size=2)

    assert outcome_of(tmp_path / "8") == outcome_of(tmp_path / "fresh")


def test_the_old_result_answers_until_the_new_one_is_complete(make_scripted, scripted, tmp_path, fill, outcome_of):
    trainer, folder = scripted({1: 40, 6: 20}), StudyFolder(tmp_path / "8")
    small, large = (make_scripted({"sweep.trials": trials}).study(8) for trials in (4, 9))
    fill(small, tmp_path / "8", trainer, pack_size=2)
    before = outcome_of(tmp_path / "8")

    run = StudyRun(large, folder)
    run.open_round()

    assert not run.is_finished
    assert outcome_of(tmp_path / "8") == before

    fill(large, tmp_path / "8", trainer, pack_size=2)

    assert outcome_of(tmp_path / "8") != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["8", "cache"] or not (tmp_path / "growing").exists()


@pytest.mark.parametrize("moment", ["first", "second", "third"])
def test_a_kill_while_studies_are_exchanged_ends_well(
    make_scripted, scripted, tmp_path, fill, outcome_of, monkeypatch, moment
):
    trainer, folder = scripted({1: 40, 6: 20}), StudyFolder(tmp_path / "8")
    small, large = (make_scripted({"sweep.trials": trials}).study(8) for trials in (4, 9))
    fill(small, tmp_path / "8", trainer, pack_size=2)
    before = outcome_of(tmp_path / "8")

    class Killed(BaseException):
        pass

    def exchange(self):
        self.replaced.folder.parent.mkdir(exist_ok=True)
        if moment != "first":
            self.folder.rename(self.replaced.folder)
        if moment == "third":
            self.growing.folder.rename(self.folder)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(StudyFolder, "exchange", exchange)
        with pytest.raises(Killed):
            fill(large, tmp_path / "8", trainer, pack_size=2)
    seen = outcome_of(folder.readable.folder)
    fill(large, tmp_path / "8", trainer, pack_size=2)
    fill(large, tmp_path / "fresh", trainer, pack_size=2)

    assert outcome_of(tmp_path / "8") == outcome_of(tmp_path / "fresh")
    assert seen == (outcome_of(tmp_path / "8") if moment == "third" else before)
    assert not (tmp_path / "growing").exists() and not (tmp_path / "replaced").exists()


def test_a_grid_with_more_points_than_attempts_is_gone_on_with_and_grows(
    make_scripted, scripted, tmp_path, fill, outcome_of
):
    """All points of a grid are tried where many diverge, however few `max_attempts` are."""
    trainer, chance = scripted({7: 40}, dict.fromkeys(range(7), 5)), random.Random(0)
    grid = {"sweep.sampler": "grid", "sweep.max_attempts": 3, "search_space": {"x": {"values": [*range(9)]}}}
    small, large = (make_scripted({**grid, "sweep.trials": trials}).study(8) for trials in (2, 3))
    fill(small, tmp_path / "8", trainer, 1, chance, restarts=0.5)

    fill(large, tmp_path / "8", trainer, 1, chance, restarts=0.5)
    fill(large, tmp_path / "fresh", trainer, 1)

    assert len(StudyFolder(tmp_path / "8").trials()) == large.num_points == 9
    assert outcome_of(tmp_path / "8") == outcome_of(tmp_path / "fresh")


def test_points_that_come_out_differently_are_refused(make_scripted, tmp_path):
    small, large = (make_scripted({"sweep.trials": trials}).study(8) for trials in (4, 9))
    folder = StudyFolder(tmp_path / "8")
    StudyRun(small, folder).choose_pack_size(2)
    record = folder.record()
    folder.save_record(record.model_copy(update={"points": record.points[::-1]}))

    with pytest.raises(LabError, match="cannot be continued"):
        StudyRun(large, folder)


def test_trials_that_no_longer_count_are_kept_aside_and_taken_up_again(
    make_scripted, scripted, tmp_path, fill, outcome_of
):
    """Two trials that diverge at 50 are replaced, until trial 2 shows that the race need not go that far."""
    trainer, folder = scripted({2: 10}, {0: 50, 1: 50, 3: 15}), StudyFolder(tmp_path / "8")
    tried, aside = [], []
    for trials in (2, 3, 5):
        fill(make_scripted({"sweep.trials": trials}).study(8), tmp_path / "8", trainer, pack_size=2)
        tried.append([trial.trial_id for trial in folder.trials()])
        aside.append([] if folder.aside() is None else sorted({int(i) for i in folder.aside()[0].trial_id}))
    fill(make_scripted({"sweep.trials": 5}).study(8), tmp_path / "fresh", trainer, pack_size=2)

    assert tried == [[0, 1, 2, 3, 4], [0, 1, 2], [0, 1, 2, 3, 4, 5]]
    assert aside == [[], [3, 4], []]
    assert outcome_of(tmp_path / "8") == outcome_of(tmp_path / "fresh")


def test_a_larger_growth_takes_up_one_whose_points_were_being_confirmed(
    make_scripted, scripted, tmp_path, fill, outcome_of
):
    """The search of the first growth had ended; what it found is not taken for the search that is asked for then."""
    trainer, folder = scripted({1: 40, 6: 20}), StudyFolder(tmp_path / "8")
    small, larger, largest = (
        make_scripted({"sweep.trials": trials, "sweep.confirm": {"seeds": seeds, "points": 1}}).study(8)
        for trials, seeds in ((3, 2), (4, 3), (9, 3))
    )
    fill(small, tmp_path / "8", trainer, pack_size=2)
    run = StudyRun(larger, folder)
    run.open_round()
    while run.confirm_run is None:
        name, task = run.take_task()
        run.keep_part(name, train_here(trainer, task, run.shelf(name)))
    assert folder.growing.record().state == "finished"

    fill(largest, tmp_path / "8", trainer, pack_size=2)
    fill(largest, tmp_path / "fresh", trainer, pack_size=2)

    assert outcome_of(tmp_path / "8") == outcome_of(tmp_path / "fresh")
    assert folder.confirmation().trial_ids == (6,)
    assert not (tmp_path / "growing").exists()


def test_a_kept_state_ends_only_where_a_trial_of_the_race_does(make_scripted, scripted, tmp_path, fill, outcome_of):
    """Trials 2 and 3 left a state together. Trial 3, at its goal, does not race yet: trial 2 trains on all the same."""
    trainer = scripted({3: 10}, {0: 5})
    first, larger = (make_scripted({"sweep.trials": 2, "sweep.max_steps": steps}).study(8) for steps in (50, 100))
    fill(first, tmp_path / "8", trainer, pack_size=2, keep_states=True, only=range(2, 4))

    fill(larger, tmp_path / "8", trainer, pack_size=2, keep_states=True)
    fill(larger, tmp_path / "fresh", trainer, pack_size=2)

    assert outcome_of(tmp_path / "8") == outcome_of(tmp_path / "fresh")


def test_only_does_not_let_an_unconfirmed_study_take_the_place_of_a_confirmed_one(
    make_scripted, scripted, tmp_path, fill
):
    trainer, folder = scripted({1: 40, 6: 20}), StudyFolder(tmp_path / "8")
    small, larger = (
        make_scripted({"sweep.trials": trials, "sweep.confirm": {"seeds": seeds, "points": 1}}).study(8)
        for trials, seeds in ((3, 2), (4, 3))
    )
    fill(small, tmp_path / "8", trainer, pack_size=2)
    run = StudyRun(larger, folder)
    run.open_round()
    while run.confirm_run is None:
        name, task = run.take_task()
        run.keep_part(name, train_here(trainer, task, run.shelf(name)))

    assert StudyRun(larger, folder, only=range(2)).is_done

    assert len(folder.trials()) == 3
    assert folder.confirmation() is not None


def test_a_study_of_an_own_trainer_is_not_gone_on_with_by_another(make_scripted, scripted, tmp_path, fill):
    small, large = (make_scripted({"sweep.trials": trials}).study(8) for trials in (4, 9))
    fill(small, tmp_path / "8", scripted({1: 40}), pack_size=2, own_trainer="Mine")

    with pytest.raises(LabError, match=r"was trained by Mine, and batchlab's own trainer would train something else"):
        StudyRun(large, StudyFolder(tmp_path / "8"))
    with pytest.raises(LabError, match="was trained by Mine, not by Yours"):
        StudyRun(large, StudyFolder(tmp_path / "8"), own_trainer="Yours")

    fill(large, tmp_path / "8", scripted({1: 40}), pack_size=2, own_trainer="Mine")
    assert StudyFolder(tmp_path / "8").record().trainer == "Mine"


def to_zero():
    """Return a schedule that is over when the budget is."""
    return lambda values, clocks, horizon: {
        "learning_rate": values["learning_rate"] * (1 - clocks.step[:, None] / horizon.max_steps)
    }


def test_a_budget_that_the_schedule_goes_by_does_not_grow(make_nqm, tmp_path, monkeypatch):
    monkeypatch.setitem(SCHEDULES, "to_zero", ScheduleEntry("to_zero", __name__, "to_zero"))
    small, large = (make_nqm({"workload.schedule": "to_zero", "sweep.max_steps": steps}) for steps in (50, 60))
    lab = Lab.create(tmp_path)
    lab.admit(small)
    StudyRun(small.study(1), lab.study_folder("nqm", 1), sweep=fixed_digest(small)).choose_pack_size(2)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}

    with pytest.raises(SpecError, match="begun with a budget of 50 steps, now 60, and its schedule goes by the"):
        run_sweep(large, tmp_path)

    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before


def test_a_schedule_in_steps_of_its_own_knows_no_budget(make_nqm):
    decay = {"name": "linear_decay", "learning_rate_decay_steps": 40, "end_learning_rate_factor": 0.1}

    assert not knows_budget(make_nqm({"workload.schedule": decay}).study(1))
    assert not knows_budget(make_nqm().study(1))
