"""What a person sees while a sweep runs: time left, best steps, and a line for each study that ends."""

from __future__ import annotations

import pytest

from batchlab.run import progress as progress_module
from batchlab.run.pack import Hooks, train_pack
from batchlab.run.progress import PlainDisplay, StudyProgress, make_display, time_left
from batchlab.run.study_run import StudyRun
from batchlab.store.study_folder import StudyFolder


@pytest.fixture
def make_progress(make_scripted, tmp_path):
    """Four trials of up to 100 steps, in packs of two."""

    def make(batch_size=8):
        study = make_scripted({"sweep.batch_sizes": [batch_size]}).study(batch_size)
        run = StudyRun(study, StudyFolder(tmp_path / str(batch_size)))
        run.choose_pack_size(2)
        return StudyProgress(run)

    return make


def finish(progress, trainer):
    """Train all packs of a study here."""
    while task := progress.run.take_task():
        name, pack = task
        hooks = Hooks(lambda: 2**62, lambda end: None, lambda *details: None, lambda: False)
        result = train_pack(trainer, pack, hooks)
        progress.run.put_back(name) if result is None else progress.run.keep_part(name, result)


def test_time_left_is_the_rest_of_the_steps_times_their_time(make_progress):
    """A pack of two at step 30, the other two waiting: 2 x 70 + 2 x 100 trial-steps of 10 ms."""
    progress = make_progress()
    assert progress.seconds_left() is None
    progress.start("1-0", 2)
    progress.advance("1-0", 30, 2, None)
    progress.seconds_per_trial_step = 0.01

    assert progress.seconds_left() == pytest.approx(3.4)
    assert time_left([progress], 1) == "at most 3 s"
    assert time_left([progress], 2) == "at most 2 s"


def test_a_winner_shortens_the_time_left(make_progress):
    """The goal at 30 ends the race at 50: 2 x 20 + 2 x 50 trial-steps."""
    progress = make_progress()
    progress.start("1-0", 2)
    progress.advance("1-0", 30, 2, 30)
    progress.seconds_per_trial_step = 0.1

    assert progress.best_steps == 30
    assert progress.seconds_left() == pytest.approx(14)
    assert time_left([progress], 1) == "about 14 s"


def test_the_time_of_a_step_is_taken_from_the_pack_in_training(make_progress, monkeypatch):
    progress, now = make_progress(), iter([0.0, 1.0, 1.0, 3.0, 3.0])
    monkeypatch.setattr(progress_module.time, "perf_counter", lambda: next(now))
    progress.start("1-0", 2)
    progress.advance("1-0", 10, 2, None)
    assert progress.seconds_per_trial_step is None  # the start of a pack is slow, and not counted

    monkeypatch.setattr(progress_module.time, "perf_counter", lambda: 3.0)
    progress.advance("1-0", 30, 2, None)

    assert progress.seconds_per_trial_step == pytest.approx((3.0 - 1.0) / (20 * 2))


def test_a_study_that_has_not_begun_is_guessed_from_its_neighbour(make_progress):
    known, unknown = make_progress(8), make_progress(32)
    known.seconds_per_trial_step = 0.01

    assert time_left([unknown], 1) == "unknown time"
    assert time_left([known, unknown], 1) == "at most 20 s"  # 400 steps of 10 ms and 400 of 40 ms


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


def test_a_plain_line_is_printed_once_for_a_finished_study(make_progress, scripted, capsys):
    progress, display = make_progress(), PlainDisplay()
    display.show([progress], 1)
    assert capsys.readouterr().err == ""
    finish(progress, scripted())

    display.show([progress], 1)
    display.show([progress], 1)
    captured = capsys.readouterr()

    assert captured.err.count("\n") == 1
    assert captured.err.startswith("batch size      8: finished")
    assert captured.out == ""


def test_a_plain_line_is_printed_after_a_quiet_while(make_progress, capsys, monkeypatch):
    progress, display = make_progress(), PlainDisplay()
    progress.run.take_task()
    monkeypatch.setattr(progress_module, "PLAIN_SECONDS", -1.0)

    display.show([progress], 1)

    line = capsys.readouterr().err
    assert line.startswith("0/1 studies; unknown time left; running: 8 (0/4 trials, goal not met")


def test_elsewhere_than_on_a_terminal_lines_are_plain(capsys):
    assert isinstance(make_display(), PlainDisplay)
