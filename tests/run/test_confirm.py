"""The best points trained again with fresh seeds: which ones, how long, and what is stored."""

from __future__ import annotations

import random

import pytest

from batchlab.core.confirmation import replicate_id
from batchlab.errors import InputError, LabError
from batchlab.run.confirm import confirm_sweep, confirmation_asked
from batchlab.run.pack import Hooks, train_pack
from batchlab.run.run_sweep import run_sweep
from batchlab.run.study_run import StudyRun
from batchlab.store.lab import Lab
from batchlab.store.study_folder import StudyFolder


def replicate_fates(goal_at):
    """Return by number where replicates meet the goal, given by trial and replicate."""
    return {replicate_id(trial, replicate): step for (trial, replicate), step in goal_at.items()}


CONFIRM = {"seeds": 2, "points": 2}


@pytest.fixture
def confirmed(make_scripted, scripted, tmp_path, fill):
    """Fill a study whose trials 3, 1 and 0 meet the goal at 20, 30 and 70, with two replicates of the best two."""

    def make(goal_at, diverges_at=None, changes=None, **options):
        study = make_scripted({"sweep.confirm": CONFIRM, **(changes or {})}).study(8)
        fates = {3: 20, 1: 30, 0: 70, **replicate_fates(goal_at)}
        trainer = scripted(fates, replicate_fates(diverges_at or {}))
        fill(study, tmp_path / "8", trainer, pack_size=options.pop("pack_size", 4), **options)
        return StudyFolder(tmp_path / "8").confirmation()

    return make


def test_the_points_that_met_the_goal_first_are_confirmed(confirmed):
    """Trial 0 met the goal at 70, beyond 1.5 times 20; replicates end at 4 times 20 where they miss it."""
    confirmation = confirmed({(3, 1): 40, (3, 2): 20, (1, 1): 30})

    assert confirmation.trial_ids == (3, 1)
    assert confirmation.end_step == 80
    assert [(r.trial_id, r.replicate, r.goal_step, r.last_step) for r in confirmation.replicates] == [
        (3, 1, 40, 40),
        (3, 2, 20, 20),
        (1, 1, 30, 30),
        (1, 2, None, 80),
    ]


def test_the_full_protocol_confirms_the_same_points(confirmed, tmp_path):
    race = confirmed({(3, 1): 40, (3, 2): 20, (1, 1): 30})
    for path in (tmp_path / "8").iterdir():
        path.unlink()
    full = confirmed({(3, 1): 40, (3, 2): 20, (1, 1): 30}, changes={"sweep.protocol": "full"})

    assert [r.model_copy(update={"wall_seconds": None}) for r in full.replicates] == [
        r.model_copy(update={"wall_seconds": None}) for r in race.replicates
    ]


def test_replicates_end_at_the_budget_at_the_latest(confirmed):
    confirmation = confirmed({}, changes={"sweep.max_steps": 75})

    assert {r.last_step for r in confirmation.replicates} == {75}


def test_a_replicate_that_diverges_is_not_replaced(confirmed):
    confirmation = confirmed({(3, 2): 20, (1, 1): 50}, diverges_at={(3, 1): 15, (1, 1): 60})

    assert [(r.goal_step, r.diverged_step) for r in confirmation.replicates] == [
        (None, 15),
        (20, None),
        (50, None),  # it diverged after it had met the goal, while others of its pack trained on
        (None, None),
    ]


def test_rows_are_kept_by_trial_and_replicate_and_end_at_the_goal(confirmed, tmp_path):
    confirmed({(3, 1): 40, (3, 2): 20, (1, 1): 30})
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "8" / "confirmed.parquet").to_pydict()

    assert list(table) == ["trial_id", "replicate", "step", "examples", "val/loss"]
    rows = list(zip(table["trial_id"], table["replicate"], table["step"], strict=True))
    assert [step for trial, replicate, step in rows if (trial, replicate) == (3, 2)] == [0, 10, 20]
    assert max(step for trial, replicate, step in rows if (trial, replicate) == (1, 2)) == 80


@pytest.mark.parametrize("seed", range(10))
def test_packs_and_restarts_change_nothing(make_scripted, scripted, tmp_path, fill, seed):
    chance = random.Random(seed)
    goal_at = {i: chance.randint(10, 60) for i in range(6) if chance.random() < 0.8}
    for trial in range(6):
        for replicate in range(1, 4):
            goal_at[replicate_id(trial, replicate)] = chance.randint(5, 200)
    diverges_at = {number: chance.randint(5, 200) for number in goal_at if number > 100 and chance.random() < 0.2}
    study = make_scripted({"sweep.trials": 6, "sweep.confirm": {"seeds": 3, "points": 3}}).study(8)
    trainer = scripted(goal_at, diverges_at)

    fill(study, tmp_path / "straight", trainer, pack_size=3)
    fill(study, tmp_path / "8", trainer, chance.randint(1, 7), chance, restarts=0.4)

    assert stored(tmp_path / "8") == stored(tmp_path / "straight")


def stored(path):
    folder = StudyFolder(path)
    confirmation, rows = folder.confirmation(), folder.replicates()
    replicates = [r.model_copy(update={"wall_seconds": None}) for r in confirmation.replicates]
    return confirmation.trial_ids, confirmation.end_step, replicates, rows.trial_id.tolist(), rows.step.tolist()


def test_more_seeds_and_points_train_only_what_is_missing(make_scripted, scripted, tmp_path, fill):
    goal_at = {i: 20 + 2 * i for i in range(4)}
    goal_at |= {replicate_id(trial, replicate): 30 for trial in range(4) for replicate in range(1, 5)}
    trainer = scripted(goal_at)
    for name, sizes in (("8", [(2, 1), (4, 1), (4, 3)]), ("fresh", [(4, 3)])):
        for seeds, points in sizes:
            study = make_scripted({"sweep.confirm": {"seeds": seeds, "points": points}}).study(8)
            fill(study, tmp_path / name, trainer, pack_size=2)

    assert stored(tmp_path / "8") == stored(tmp_path / "fresh")


def test_a_goal_that_nobody_met_leaves_nothing_to_confirm(make_scripted, scripted, tmp_path, fill):
    study = make_scripted({"sweep.confirm": CONFIRM}).study(8)

    fill(study, tmp_path / "8", scripted({}), pack_size=2)

    assert StudyFolder(tmp_path / "8").confirmation().replicates == ()


@pytest.mark.parametrize("pack_size", [2, 5])
def test_a_replicate_has_seeds_of_its_own_on_real_data(make_digits, tmp_path, pack_size):
    sweep = make_digits(
        {"sweep.confirm": {"seeds": 3, "points": 1}, "sweep.batch_sizes": [16], "engine.pack_size": pack_size}
    )
    run_sweep(sweep, tmp_path / "lab", num_workers=1)
    folder = Lab.open(tmp_path / "lab").study_folder("digits", 16)
    rows, (best,) = folder.replicates(), folder.confirmation().trial_ids
    search = folder.result().measurements.curve(best)

    starts = [rows.curve(replicate_id(best, i)).metrics["val/cross_entropy_error"][0] for i in (1, 2, 3)]
    assert len({*starts, search.metrics["val/cross_entropy_error"][0]}) == 4


def test_a_finished_lab_is_confirmed_by_its_name(make_digits, tmp_path):
    run_sweep(make_digits({"sweep.batch_sizes": [16, 64]}), tmp_path / "lab", num_workers=1)

    summary = confirm_sweep(tmp_path / "lab", "digits", seeds=6, points=1, num_workers=1)

    assert [row.confirmed.seeds for row in summary.rows] == [6, 6]
    assert summary.headline == "confirmed"
    assert Lab.open(tmp_path / "lab").sweep("digits").spec.search.confirm.seeds == 6


def test_fewer_seeds_than_there_are_are_refused(make_digits, tmp_path):
    run_sweep(make_digits({"sweep.confirm": CONFIRM, "sweep.batch_sizes": [16]}), tmp_path / "lab", num_workers=1)

    with pytest.raises(InputError) as refused:
        confirm_sweep(tmp_path / "lab", "digits", seeds=1, points=2, num_workers=1)

    assert str(refused.value) == (
        "seeds = 1 is less than the 2 that sweep digits is confirmed with, which can only become more. "
        "Give 2 or more, or leave it out."
    )


@pytest.mark.parametrize(
    ("before", "asked", "expected"),
    [
        (None, {}, (6, 3)),
        (None, {"points": 1}, (6, 1)),
        ({"seeds": 9, "points": 5}, {}, (9, 5)),
        ({"seeds": 9, "points": 5}, {"seeds": 12}, (12, 5)),
        ({"seeds": 9, "points": 5}, {"points": 6}, (9, 6)),
    ],
)
def test_what_is_not_said_is_as_the_sweep_has_it(make_digits, before, asked, expected):
    confirm = confirmation_asked(make_digits({"sweep.confirm": before} if before else None), **asked)

    assert (confirm.seeds, confirm.points) == expected


def test_fewer_points_are_refused_though_there_are_more_seeds(make_digits):
    sweep = make_digits({"sweep.confirm": {"seeds": 9, "points": 5}})

    with pytest.raises(InputError, match="^points = 3 is less than the 5 that sweep digits is confirmed with"):
        confirmation_asked(sweep, seeds=12, points=3)


def test_a_spec_that_says_nothing_of_confirming_leaves_it_as_it_is(make_digits, tmp_path):
    run_sweep(make_digits({"sweep.confirm": CONFIRM, "sweep.batch_sizes": [16]}), tmp_path / "lab", num_workers=1)
    run_sweep(make_digits({"sweep.batch_sizes": [16]}), tmp_path / "lab", num_workers=1)

    assert Lab.open(tmp_path / "lab").sweep("digits").spec.search.confirm.seeds == 2


def test_an_unfinished_sweep_is_not_confirmed(make_digits, tmp_path):
    lab = Lab.create(tmp_path / "lab")
    lab.admit(make_digits())

    with pytest.raises(LabError, match="not finished at batch size 16, 64"):
        confirm_sweep(tmp_path / "lab", "digits", num_workers=1)


def test_a_sweep_that_is_growing_is_not_confirmed(make_digits, tmp_path):
    """It would train the growth, 4 trials of each batch size, before the first replicate."""
    lab, sizes = tmp_path / "lab", {"sweep.batch_sizes": [16, 64]}
    run_sweep(make_digits(sizes), lab, num_workers=1)
    more = make_digits({**sizes, "sweep.trials": make_digits().search.trials + 4})
    run_sweep(more, lab, num_workers=1, only=range(1))
    before = {path: path.read_bytes() for path in lab.rglob("*") if path.is_file()}

    with pytest.raises(
        LabError, match=r"not finished at batch size 16 \(growing\), 64 \(growing\)\. Run it to its end"
    ):
        confirm_sweep(lab, "digits", points=1, num_workers=1)

    assert before == {path: path.read_bytes() for path in lab.rglob("*") if path.is_file()}


def test_more_that_was_asked_for_and_not_begun_is_not_confirmed(make_digits, tmp_path):
    """A kill between the spec and the studies leaves them smaller than it asks for."""
    run_sweep(make_digits({"sweep.batch_sizes": [16]}), tmp_path / "lab", num_workers=1)
    Lab.open(tmp_path / "lab").admit(make_digits({"sweep.batch_sizes": [16], "sweep.race_factor": 3.0}))

    with pytest.raises(LabError, match=r"not finished at batch size 16 \(growing\)\."):
        confirm_sweep(tmp_path / "lab", "digits", points=1, num_workers=1)


def test_a_larger_confirmation_that_was_stopped_goes_on(make_scripted, scripted, tmp_path, fill):
    """What was trained for it is kept, although the smaller one is there already."""
    goal_at = {0: 20, **{replicate_id(0, replicate): 30 for replicate in range(1, 7)}}
    small, large = (make_scripted({"sweep.confirm": {"seeds": seeds, "points": 1}}).study(8) for seeds in (2, 6))
    fill(small, tmp_path / "8", scripted(goal_at), pack_size=2)
    run = StudyRun(large, StudyFolder(tmp_path / "8"))
    name, task = run.take_task()
    hooks = Hooks(lambda: task.end_step, lambda end: None, lambda *_: None, lambda: False, run.shelf(name).save)
    run.keep_part(name, train_pack(scripted(goal_at), task, hooks))

    again = StudyRun(large, StudyFolder(tmp_path / "8"))

    assert (run.confirm_run.num_done, again.confirm_run.num_done) == (4, 4)


def test_a_goal_met_where_the_budget_ended_is_looked_for_again_in_a_larger_one(make_scripted, scripted, tmp_path, fill):
    """The grid is every 10 steps; 75 is evaluated only while it is the end of the budget."""
    goal_at = {0: 40, replicate_id(0, 1): 72}
    for name, budgets in (("8", [75, 105]), ("fresh", [105])):
        for steps in budgets:
            study = make_scripted({"sweep.max_steps": steps, "sweep.confirm": {"seeds": 1, "points": 1}}).study(8)
            fill(study, tmp_path / name, scripted(goal_at), pack_size=2)

    assert [r.goal_step for r in StudyFolder(tmp_path / "8").confirmation().replicates] == [80]
    assert stored(tmp_path / "8") == stored(tmp_path / "fresh")
