"""How far studies are: best steps and values so far, and the time left."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchlab.core.evaluation import Evaluation
from batchlab.run import progress as progress_module
from batchlab.run.pack import Hooks, train_pack
from batchlab.run.progress import StudyProgress, count_evaluations, time_left
from batchlab.run.standing import Standing
from batchlab.run.study_run import StudyRun
from batchlab.store.study_folder import StudyFolder


@pytest.fixture
def make_progress(make_scripted, tmp_path):
    """Four trials of up to 100 steps, in packs of two."""

    def make(batch_size=8, **settings):
        study = make_scripted({"sweep.batch_sizes": [batch_size], **settings}).study(batch_size)
        run = StudyRun(study, StudyFolder(tmp_path / str(batch_size)))
        run.choose_pack_size(2)
        return StudyProgress(run)

    return make


def finish(progress, trainer):
    """Train all packs of a study here."""
    while train_one(progress, trainer):
        pass


def train_one(progress, trainer):
    """Train one pack here; return whether there was one."""
    task = progress.run.take_task()
    if task is None:
        return False
    name, pack = task
    hooks = Hooks(lambda: 2**62, lambda end: None, lambda *details: None, lambda: False, progress.run.shelf(name).save)
    result = train_pack(trainer, pack, hooks)
    progress.run.put_back(name) if result is None else progress.run.keep_part(name, result)
    return True


def test_time_left_is_the_rest_of_the_steps_times_their_time(make_progress):
    """A pack of two at step 30, the other two waiting: 2 x 70 + 2 x 100 trial-steps of 10 ms."""
    progress = make_progress()
    assert progress.seconds_left() is None
    progress.start("1-0", 2)
    progress.advance("1-0", Standing(30, 2, None))
    progress.seconds_per_trial_step = 0.01

    assert progress.seconds_left() == pytest.approx(3.4)
    assert time_left([progress], 1) == "at most 3 s"
    assert time_left([progress], 2) == "at most 2 s"


def test_a_winner_shortens_the_time_left(make_progress):
    """The goal at 30 ends the race at 50: 2 x 20 + 2 x 50 trial-steps."""
    progress = make_progress()
    progress.start("1-0", 2)
    progress.advance("1-0", Standing(30, 2, 30))
    progress.seconds_per_trial_step = 0.1

    assert progress.best_steps == 30
    assert progress.seconds_left() == pytest.approx(14)
    assert time_left([progress], 1) == "about 14 s"


def test_after_a_resume_the_goal_of_a_stored_pack_is_known(make_progress, scripted):
    """Of packs of two the first has met the goal at 30, which ends the race at 50; the second waits."""
    before = make_progress()
    while not before.run.outcomes:
        train_one(before, scripted(goal_at={0: 30}))

    progress = StudyProgress(StudyRun(before.run.study, StudyFolder(before.run.shelf("").path.parents[1])))
    progress.run.open_round()
    progress.seconds_per_trial_step = 0.1

    assert (progress.num_done, progress.best_steps) == (2, 30)
    assert time_left([progress], 1) == "about 10 s"


def test_a_stored_trial_that_diverged_before_the_race_it_would_win_was_over_has_not_met_the_goal(
    make_progress, scripted
):
    progress = make_progress()
    while not progress.run.outcomes:
        train_one(progress, scripted(goal_at={0: 30}, diverges_at={0: 45}))

    assert (progress.num_done, progress.best_steps) == (1, None)


def test_outcomes_are_gathered_anew_only_when_a_pack_is_kept(make_progress, scripted):
    progress = make_progress()
    before = progress.run.outcomes
    assert progress.run.outcomes is before

    while progress.run.outcomes is before:
        train_one(progress, scripted(goal_at={0: 30}))

    assert len(progress.run.outcomes) == 2


def test_the_time_of_a_step_is_taken_from_the_pack_in_training(make_progress, monkeypatch):
    progress, now = make_progress(), iter([0.0, 1.0, 1.0, 3.0, 3.0])
    monkeypatch.setattr(progress_module.time, "perf_counter", lambda: next(now))
    progress.start("1-0", 2)
    progress.advance("1-0", Standing(10, 2, None))
    assert progress.seconds_per_trial_step is None  # the start of a pack is slow, and not counted

    monkeypatch.setattr(progress_module.time, "perf_counter", lambda: 3.0)
    progress.advance("1-0", Standing(30, 2, None))

    assert progress.seconds_per_trial_step == pytest.approx((3.0 - 1.0) / (20 * 2))


def test_a_study_that_has_not_begun_is_guessed_from_its_neighbour(make_progress):
    known, unknown = make_progress(8), make_progress(32)
    known.seconds_per_trial_step = 0.01

    assert time_left([unknown], 1) == "unknown time"
    assert time_left([known, unknown], 1) == "at most 20 s"  # 400 steps of 10 ms and 400 of 40 ms


def meet(progress, steps):
    """Have a study in training meet the goal at a step."""
    progress.start("1-0", 2)
    progress.advance("1-0", Standing(steps, 2, steps))
    progress.seconds_per_trial_step = 0.01


def test_a_bound_is_told_as_such_where_another_batch_size_has_met_the_goal_early(make_progress):
    """32 has met it at 10 and ends at 20: 2 x 10 + 2 x 20 steps of 10 ms. 128 will by 10, 4 x 20 steps of 40 ms."""
    met, waits = make_progress(32), make_progress(128)
    meet(met, 10)

    # At most 0.6 s and 4 x 100 steps of 40 ms.
    assert time_left([met, waits], 1) == "at most 17 s, perhaps 4 s"
    assert time_left([met, waits], 2) == "at most 8 s, perhaps 2 s"


def test_a_bound_stays_one_where_a_smaller_batch_may_need_its_budget(make_progress):
    """8 may need 16 times the 10 steps of 128: more than its budget of 100."""
    met, waits = make_progress(128), make_progress(8)
    meet(met, 10)

    assert re.fullmatch(r"at most \d+ s", time_left([met, waits], 1))


def test_a_bound_stays_one_where_the_goal_was_met_late(make_progress):
    met, waits = make_progress(32), make_progress(128)
    meet(met, 70)

    assert re.fullmatch(r"at most \d+ s", time_left([met, waits], 1))


def test_a_bound_stays_one_where_a_study_has_trained_far_without_the_goal(make_progress):
    met, trains = make_progress(32), make_progress(128)
    meet(met, 10)
    trains.start("1-0", 2)
    trains.advance("1-0", Standing(70, 2, None))

    assert re.fullmatch(r"at most \d+ s", time_left([met, trains], 1))


def test_a_bound_stays_one_where_a_study_has_ended_without_the_goal(make_progress, scripted):
    met, waits, ended = make_progress(32), make_progress(128), make_progress(64)
    meet(met, 10)
    finish(ended, scripted())

    assert ended.run.is_finished
    assert re.fullmatch(r"at most \d+ s", time_left([met, waits, ended], 1))


def test_a_bound_stays_one_where_every_trial_trains_to_its_budget(make_progress):
    met, waits = (make_progress(size, **{"sweep.protocol": "full"}) for size in (32, 128))
    meet(met, 10)

    assert re.fullmatch(r"at most \d+ s", time_left([met, waits], 1))


@pytest.mark.parametrize(
    ("known_seconds", "guess"),
    [
        (0.4, 0.1),  # the work of a large step shrinks with the batch
        (0.004, 0.002),  # down to what a step costs at any batch size
        (0.001, 0.001),  # and a step that is all overhead costs the same
    ],
)
def test_a_smaller_batch_is_guessed_faster_down_to_the_cost_of_a_step(make_progress, known_seconds, guess):
    known, unknown = make_progress(32), make_progress(8)
    known.seconds_per_trial_step = known_seconds

    time_left([known, unknown], 1)

    assert unknown.guessed_seconds_per_trial_step == pytest.approx(guess)


def test_a_finished_study_needs_no_time(make_progress, scripted):
    progress = make_progress()
    finish(progress, scripted(goal_at={0: 20}))

    assert progress.run.is_finished
    assert progress.seconds_left() == 0
    assert (progress.num_done, progress.best_steps) == (4, 20)


def test_replicates_are_counted_before_and_while_they_train(make_progress, scripted):
    """The goal at 20: replicates are expected to meet it by 30, and end at 80 where they do not."""
    progress = make_progress(**{"sweep.confirm": {"seeds": 3, "points": 1}})
    progress.seconds_per_trial_step = 0.1
    assert progress.seconds_left() == pytest.approx(4 * 10 + 3 * 10), "before a goal is met, to the end of the budget"

    while progress.run.confirm_run is None:
        train_one(progress, scripted(goal_at={0: 20}))
    assert progress.seconds_left() == pytest.approx(3 * 3)

    progress.start("replicates", 2)
    progress.advance("replicates", Standing(10, 2, None))
    assert progress.seconds_left() == pytest.approx(2 * 2 + 3)
    progress.advance("replicates", Standing(40, 2, 15))
    progress.seconds_per_trial_step = 0.1
    assert progress.seconds_left() == pytest.approx(2 * 4 + 8), "late ones may train to their end"
    assert progress.best_steps == 20


def test_evaluations_are_timed_apart_from_steps(make_progress, monkeypatch):
    """Ten steps of two trials with five evaluations in 6 s, of which those take 5: 0.05 s a trial-step, 0.5 s each.

    From step 20 to the end at 100 each of the two needs 80 steps and 8 evaluations: 16 s, where the mean of the
    last ten steps would promise 48 s. The two that wait need 100 steps and 10 evaluations each.
    """
    progress, now = make_progress(), iter([0.0, 1.0, 7.0])
    monkeypatch.setattr(progress_module.time, "perf_counter", lambda: next(now))
    progress.start("1-0", 2)
    progress.advance("1-0", Standing(10, 2, None, 0.9, 1, 0.5))
    progress.advance("1-0", Standing(20, 2, None, 0.8, 6, 5.5))

    assert progress.seconds_per_trial_step == pytest.approx(1 / 20)
    assert progress.seconds_per_evaluation == pytest.approx(5 / 10)
    assert progress.seconds_left() == pytest.approx(2 * (80 * 0.05 + 8 * 0.5) + 2 * (100 * 0.05 + 10 * 0.5))


def test_the_best_value_is_kept_over_packs_and_pauses(make_progress):
    progress = make_progress()
    for name, step, value in (("1-0", 30, 0.7), ("1-1", 20, 0.9), ("1-1", 30, None)):
        progress.start(name, 2)
        progress.advance(name, Standing(step, 2, best_value=value))

    assert (progress.best_value, progress.step) == (0.7, 30)


@given(
    evaluation=st.one_of(
        st.builds(Evaluation, growth=st.floats(1.01, 3)), st.builds(Evaluation, every=st.integers(1, 50))
    ),
    ends=st.tuples(st.integers(0, 300), st.integers(0, 300)),
)
def test_evaluations_are_counted_as_they_will_be_made(evaluation, ends):
    start, end = sorted(ends)
    made = [step for step in evaluation.steps(1000) if step < 1000]
    start = max(step for step in made if step <= start)

    assert count_evaluations(evaluation, start, end) == sum(start < step <= end for step in made)
