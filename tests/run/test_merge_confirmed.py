"""A study that two labs have searched and one, or both in part, have confirmed: the joined lab has the confirmation."""

from __future__ import annotations

import pytest

from batchlab.core.confirmation import Confirm, replicate_id
from batchlab.core.growth import fixed_digest
from batchlab.errors import LabError
from batchlab.run.merge.labs import merge_labs
from batchlab.run.merge.same_rows import check_same_rows
from batchlab.run.pack import Hooks, train_pack
from batchlab.run.study_run import StudyRun
from batchlab.store.lab import Lab
from batchlab.verify.lab import verify_lab

GOAL_AT = {0: 20, 1: 30, replicate_id(0, 1): 10, replicate_id(0, 2): 40, replicate_id(1, 1): 50}
"""Trials 0 and 1 meet the goal, trials 2 and 3 never: two points are there to be confirmed."""


@pytest.fixture
def make_lab(tmp_path, make_scripted, scripted, fill):
    """Return a function that makes a lab of this name, which asks for one confirmation and has another, or none."""

    def make(name, has=None, asks=(2, 2), goal_at=GOAL_AT, **changes):
        lab, studied = Lab.create(tmp_path / name), make_scripted({**changes, **_confirm(has)})
        lab.admit(studied)
        folder = tmp_path / name / "sweeps" / "scripted" / "8"
        fill(studied.study(8), folder, scripted(goal_at), pack_size=1, sweep=fixed_digest(studied))
        lab.admit(make_scripted({**changes, **_confirm(asks)}))
        return tmp_path / name

    return make


def _confirm(extent):
    return {} if extent is None else {"sweep.confirm": dict(zip(("seeds", "points"), extent, strict=True))}


def study_folder(lab):
    return Lab.open(lab).study_folder("scripted", 8)


def confirmed_rows(lab):
    rows = study_folder(lab).replicates()
    return list(zip(rows.trial_id.tolist(), rows.step.tolist(), rows.metrics["val/loss"].tolist(), strict=True))


def begin_to_confirm(lab, trainer):
    """Train one replicate of what the lab asks for, as a run does that is stopped then."""
    run = StudyRun(Lab.open(lab).sweep("scripted").spec.study(8), study_folder(lab))
    name, task = run.take_task()
    end = task.end_step
    result = train_pack(trainer, task, Hooks(lambda: end, lambda _: None, lambda *_: None, lambda: False, None))
    run.keep_part(name, result)
    assert study_folder(lab).confirming.packs("parts")


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_confirmation_is_taken_by_a_lab_that_has_only_searched(make_lab, scripted, has_begun):
    source, target = make_lab("source", has=(2, 2)), make_lab("target")
    if has_begun:
        begin_to_confirm(target, scripted(GOAL_AT))

    (merged,) = merge_labs([source], target)

    assert (merged.copied, merged.joined, merged.confirmed, merged.left_out) == ((), (), (8,), ())
    mine, theirs = study_folder(target), study_folder(source)
    assert mine.confirmation() == theirs.confirmation()
    assert confirmed_rows(target) == confirmed_rows(source)
    table = "confirmed.parquet"
    assert (mine.folder / table).read_bytes() == (theirs.folder / table).read_bytes()
    assert mine.record().without_times() == theirs.record().without_times()
    assert not mine.confirming.folder.exists()
    assert verify_lab(target).is_sound and verify_lab(source).is_sound


def test_a_run_of_the_joined_lab_has_nothing_left_to_train(make_lab):
    source, target = make_lab("source", has=(2, 2)), make_lab("target")
    merge_labs([source], target)

    run = StudyRun(Lab.open(target).sweep("scripted").spec.study(8), study_folder(target))

    assert run.is_finished


def test_a_confirmation_is_taken_by_a_new_lab_from_the_second_of_two(make_lab, tmp_path):
    labs = [make_lab("searched"), make_lab("confirmed", has=(2, 2))]

    (merged,) = merge_labs(labs, tmp_path / "both")

    assert (merged.copied, merged.confirmed) == ((8,), (8,))
    assert study_folder(tmp_path / "both").confirmation() is not None
    assert verify_lab(tmp_path / "both").is_sound


def test_a_merge_of_a_confirmation_repeated_changes_nothing(make_lab):
    source, target = make_lab("source", has=(2, 2)), make_lab("target")
    merge_labs([source], target)
    before = {path: path.read_bytes() for path in (target / "sweeps").rglob("*") if path.is_file()}

    (merged,) = merge_labs([source], target)

    assert (merged.confirmed, merged.left_out) == ((), ())
    assert before == {path: path.read_bytes() for path in (target / "sweeps").rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("theirs", "mine", "extent"),
    [((2, 2), (1, 2), (2, 2)), ((2, 2), (2, 1), (2, 2)), ((1, 2), (2, 2), (2, 2)), ((1, 1), (1, 2), (1, 2))],
)
def test_the_larger_of_two_confirmations_stays(make_lab, theirs, mine, extent):
    source, target = make_lab("source", has=theirs), make_lab("target", has=mine)

    (merged,) = merge_labs([source], target)

    confirmation = study_folder(target).confirmation()
    assert (confirmation.seeds, len(confirmation.trial_ids)) == extent
    assert merged.confirmed == ((8,) if extent != mine else ()) and merged.left_out == ()
    assert verify_lab(target).is_sound


def test_a_smaller_confirmation_leaves_the_replicates_of_a_larger_one_that_has_begun(make_lab, scripted):
    """The run that was stopped goes on with the replicate that it had trained."""
    source, target = make_lab("source", has=(1, 1)), make_lab("target")
    begin_to_confirm(target, scripted(GOAL_AT))
    begun = study_folder(target).confirming.packs("parts")

    (merged,) = merge_labs([source], target)

    assert merged.confirmed == (8,)
    assert study_folder(target).confirmation().seeds == 1
    assert set(begun) <= set(study_folder(target).confirming.packs("parts"))
    assert study_folder(target).record().study.confirm == Confirm(seeds=2, points=2)
    assert verify_lab(target).is_sound
    run = StudyRun(Lab.open(target).sweep("scripted").spec.study(8), study_folder(target))
    assert run.confirm_run.num_done == 2  # of 4: the one of the source, and the one that had begun


def test_neither_of_two_confirmations_has_the_other(make_lab):
    source, target = make_lab("source", has=(1, 2)), make_lab("target", has=(2, 1))

    (merged,) = merge_labs([source], target)

    assert merged.confirmed == ()
    assert merged.left_out == (
        f"batch size 8 of {source}: it is confirmed with 1 seed of 2 points, and here with 2 seeds of 1 point",
    )
    assert study_folder(target).confirmation().seeds == 2


def test_a_confirmation_that_has_only_begun_is_named(make_lab, scripted):
    source, target = make_lab("source"), make_lab("target")
    begin_to_confirm(source, scripted(GOAL_AT))

    (merged,) = merge_labs([source], target)

    (line,) = merged.left_out
    assert line == f"batch size 8 of {source}: its confirmation has only begun; end it there first: batchlab run"


def test_a_larger_search_that_stays_is_named(make_lab, make_scripted):
    """The spec of both asks for 8 trials, and one lab was stopped before it had them."""
    source, target = make_lab("source", **{"sweep.trials": 8}), make_lab("target", **{"sweep.trials": 4})
    Lab.open(target).admit(make_scripted({"sweep.trials": 8, **_confirm((2, 2))}))

    (merged,) = merge_labs([source], target)

    (line,) = merged.left_out
    assert line.startswith(f"batch size 8 of {source}: both labs have finished it, and searched differently (")
    assert "trials: 4 -> 8" in line
    assert merge_labs([target], source)[0].left_out == ()  # the smaller one has nothing more


def test_other_rows_of_a_replicate_are_refused_and_nothing_is_written(make_lab, scripted):
    source, target = make_lab("source", has=(2, 2)), make_lab("target")
    begin_to_confirm(target, scripted({**GOAL_AT, **{replicate_id(i, j): 60 for i in (0, 1) for j in (1, 2)}}))
    before = {path: path.read_bytes() for path in (target / "sweeps").rglob("*") if path.is_file()}

    with pytest.raises(LabError, match=r"Replicate \d of trial \d has other rows in .*source.*than in .*target"):
        merge_labs([source], target)

    assert before == {path: path.read_bytes() for path in (target / "sweeps").rglob("*") if path.is_file()}
    with pytest.raises(LabError, match="has other rows"):
        check_same_rows(study_folder(target), study_folder(source))
