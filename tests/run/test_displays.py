"""What a person sees while a sweep runs: plain lines, and a table in a notebook."""

from __future__ import annotations

import sys
from io import StringIO
from types import ModuleType, SimpleNamespace

import pytest
from rich.console import Console

from batchlab.run import displays
from batchlab.run.displays import (
    NotebookDisplay,
    PlainDisplay,
    SilentDisplay,
    default_display,
    describe,
    fitting_table,
    make_display,
    that_fit,
)
from batchlab.run.pack import Hooks, train_pack
from batchlab.run.progress import StudyProgress
from batchlab.run.run_sweep import run_sweep
from batchlab.run.standing import Standing
from batchlab.run.study_run import StudyRun
from batchlab.store.study_folder import StudyFolder


@pytest.fixture
def progress(make_scripted, tmp_path):
    """Four trials of up to 100 steps, in packs of two."""
    run = StudyRun(make_scripted().study(8), StudyFolder(tmp_path / "8"))
    run.choose_pack_size(2)
    return StudyProgress(run)


def finish(progress, trainer, *, while_searching=False):
    """Train all packs of a study here, or those of its search."""
    while not (while_searching and progress.run.is_searched) and (task := progress.run.take_task()):
        name, pack = task
        save = progress.run.shelf(name).save
        hooks = Hooks(lambda: 2**62, lambda end: None, lambda standing: None, lambda: False, save)
        result = train_pack(trainer, pack, hooks)
        progress.run.put_back(name) if result is None else progress.run.keep_part(name, result)


def test_a_plain_line_is_printed_once_for_a_finished_study(progress, scripted, capsys):
    display = PlainDisplay()
    display.show([progress], 1)
    assert capsys.readouterr().err == ""
    finish(progress, scripted())

    display.show([progress], 1)
    display.show([progress], 1)
    captured = capsys.readouterr()

    assert captured.err.count("\n") == 1
    assert captured.err.startswith("batch size      8: finished")
    assert captured.out == ""


def test_after_a_quiet_while_each_study_in_training_tells_its_step_and_best_value(progress, capsys, monkeypatch):
    display = PlainDisplay()
    monkeypatch.setattr(displays, "PLAIN_SECONDS", -1.0)
    monkeypatch.setattr(displays, "PLAIN_SHARE", -1.0)
    name, _ = progress.run.take_task()
    progress.start(name, 2)
    progress.advance(name, Standing(30, 2, None, 0.71234))
    progress.seconds_per_trial_step = 0.01

    display.show([progress], 1)

    assert capsys.readouterr().err.splitlines() == [
        "batch size      8: 0/4 trials, step 30, val/loss 0.7123, goal not met",
        "0 of 1 studies finished, at most 3 s left",
    ]


def test_a_low_terminal_shows_what_is_in_training(make_scripted, tmp_path):
    def waiting(size):
        return StudyProgress(StudyRun(make_scripted().study(size), StudyFolder(tmp_path / f"{size}")))

    *rest, trains = studies = [waiting(size) for size in (8, 16, 32)]
    trains.run.choose_pack_size(2)
    trains.run.take_task()

    assert that_fit(studies, 1) == [trains]
    assert that_fit(studies, 2) == [rest[0], trains]
    assert that_fit(studies, 9) == studies


@pytest.mark.parametrize("width", [55, 60, 80, 100])
def test_on_a_narrow_terminal_each_study_has_one_line(progress, width):
    """Headers are broken instead."""
    progress.start("1-0", 2)
    progress.advance("1-0", Standing(30, 2, 30, 0.4))
    progress.seconds_per_trial_step = 0.01
    console = Console(width=width, height=24, record=True, file=StringIO())
    console.print(fitting_table(console, [progress] * 3, 1))

    rows = [line.split() for line in console.export_text().splitlines() if line.startswith("│")]

    assert len(rows) == 3
    assert all("0/4 trials" in " ".join(row).replace("│", "") for row in rows)


def test_a_low_terminal_has_no_more_lines_than_it_shows(make_scripted, tmp_path):
    sizes = [2**k for k in range(12)]
    studies = [
        StudyProgress(StudyRun(make_scripted().study(size), StudyFolder(tmp_path / f"{size}"))) for size in sizes
    ]
    console = Console(width=60, height=12, file=StringIO())
    table = fitting_table(console, studies, 1)

    assert len(console.render_lines(table)) <= 12
    assert f"{12 - table.row_count} studies not shown" in table.caption
    assert table.row_count > 1


def test_lines_become_rarer_the_longer_it_takes(progress, capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr(displays.time, "perf_counter", lambda: now)
    display, shown = PlainDisplay(), []
    name, _ = progress.run.take_task()
    progress.start(name, 2)

    for now in range(10_000):
        display.show([progress], 1)
        if capsys.readouterr().err:
            shown.append(now)

    assert shown[:3] == [11, 22, 33]
    assert len(shown) < 220
    assert shown[-1] - shown[-2] == pytest.approx(0.02 * shown[-1], abs=2)


def test_a_study_whose_pack_size_is_measured_says_so_and_one_that_waits_for_that_does_not(
    make_scripted, tmp_path, capsys, monkeypatch
):
    measured, waits = (
        StudyProgress(StudyRun(make_scripted().study(size), StudyFolder(tmp_path / str(size)))) for size in (8, 32)
    )
    measured.is_measuring = True
    monkeypatch.setattr(displays, "PLAIN_SECONDS", -1.0)
    monkeypatch.setattr(displays, "PLAIN_SHARE", -1.0)

    PlainDisplay().show([measured, waits], 1)

    assert capsys.readouterr().err.splitlines() == [
        "batch size      8: measuring how many trials to train together",
        "0 of 2 studies finished, unknown time left",
    ]
    assert describe(waits) == "waits for a worker"


def test_a_study_whose_best_points_train_again_tells_how_many_have(
    make_scripted, scripted, tmp_path, capsys, monkeypatch
):
    run = StudyRun(make_scripted({"sweep.confirm": {"seeds": 3, "points": 1}}).study(8), StudyFolder(tmp_path / "8"))
    run.choose_pack_size(2)
    progress = StudyProgress(run)
    monkeypatch.setattr(displays, "PLAIN_SECONDS", -1.0)
    monkeypatch.setattr(displays, "PLAIN_SHARE", -1.0)
    finish(progress, scripted(goal_at={0: 40}), while_searching=True)
    name, _ = run.take_task()
    progress.start(name, 2)
    progress.advance(name, Standing(10, 2, None, 1.0))

    PlainDisplay().show([progress], 1)

    line = "batch size      8: searched, 0/3 replicates, step 10, val/loss 1, best 40 steps"
    assert capsys.readouterr().err.splitlines()[0] == line


def test_elsewhere_than_on_a_terminal_lines_are_plain(capsys):
    assert isinstance(make_display(), PlainDisplay)


def test_a_call_from_python_shows_nothing_but_in_a_notebook(monkeypatch):
    assert type(default_display()) is SilentDisplay
    prompt = ModuleType("IPython")
    prompt.get_ipython = lambda: SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", prompt)
    assert type(default_display()) is SilentDisplay


@pytest.fixture
def cell(monkeypatch):
    """A notebook: what was displayed, and each page that took its place."""
    pages = []

    def display(page, display_id):
        assert display_id
        pages.append(page)
        return SimpleNamespace(update=pages.append)

    package, module = ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = lambda: SimpleNamespace(kernel=object())
    module.HTML, module.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return pages


def test_in_a_notebook_a_table_below_the_cell_is_redrawn(progress, cell, monkeypatch):
    monkeypatch.setattr(displays, "CELL_SECONDS", -1.0)
    progress.start("1-0", 2)
    with default_display() as display:
        display.show([progress], 1)
        progress.advance("1-0", Standing(30, 2, 30, 0.4))
        display.show([progress], 1)
        display.say("Stopping: <soon>")

    assert isinstance(display, NotebookDisplay)
    assert "<td>8</td><td>0/4 trials</td><td>0</td><td></td>" in cell[0]
    assert "<td>8</td><td>0/4 trials</td><td>30</td><td>0.4</td><td>30</td>" in cell[1]
    assert cell[-1].endswith("<p>Stopping: &lt;soon&gt;</p>")


def test_a_run_in_a_notebook_ends_with_the_finished_table(make_nqm, tmp_path, cell):
    run_sweep(make_nqm({"sweep.batch_sizes": [16]}), tmp_path / "lab", num_workers=1)

    assert "<td>16</td><td>all</td>" in cell[-1]
    assert "<td>finished</td>" in cell[-1]
    assert "<caption>finished</caption>" in cell[-1]
