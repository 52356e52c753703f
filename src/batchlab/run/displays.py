"""What a person sees while a sweep runs: a live table on a terminal or in a notebook, plain lines elsewhere."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from batchlab.core.duration import spell_seconds
from batchlab.run.progress import StudyProgress, time_left

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PLAIN_SECONDS, PLAIN_SHARE = 10.0, 0.02
"""Between two plain lines, when nothing has finished: so many, or this share of the time since the beginning if that is
longer. The log of a night has hundreds of lines, not thousands."""

CELL_SECONDS = 1.0
"""Between two tables in a notebook."""

NARROW = 80
"""Columns of a terminal below which the live table has no room beside its numbers."""

UNBROKEN = ("done", "time left (one core)")
"""Columns whose cells have several words: they stay in one line, and the headers of the others are broken instead."""

COLUMNS = ("batch size", "done", "step", "best value so far", "best steps so far", "time left (one core)")


class Display(Protocol):
    """Shows progress; a context manager around the run."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *details: Any) -> None: ...

    def show(self, studies: Sequence[StudyProgress], num_workers: int) -> None:
        """Show where every study stands."""
        ...

    def say(self, sentence: str) -> None:
        """Show one sentence."""
        ...


class SilentDisplay:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: Any) -> None:
        pass

    def show(self, studies: Sequence[StudyProgress], num_workers: int) -> None:
        """Nothing."""

    def say(self, sentence: str) -> None:
        """Nothing."""


class PlainDisplay(SilentDisplay):
    """A line on stderr whenever a study finishes, and some every few seconds in between."""

    def __init__(self) -> None:
        self._finished: set[int] = set()
        self._started = self._shown = time.perf_counter()

    def show(self, studies: Sequence[StudyProgress], num_workers: int) -> None:
        """Print a line for each newly finished study; after a quiet while one for each in training, and one for all."""
        for study in studies:
            if study.run.is_finished and study.run.study.batch_size not in self._finished:
                self._finished.add(study.run.study.batch_size)
                self._print(study)
        now = time.perf_counter()
        if now - self._shown > max(PLAIN_SECONDS, PLAIN_SHARE * (now - self._started)):
            for study in studies:
                if study.run.is_training or study.is_measuring:
                    self._print(study)
            left = time_left(studies, num_workers)
            self.say(f"{len(self._finished)} of {len(studies)} studies finished, {left} left")

    def _print(self, study: StudyProgress) -> None:
        self.say(f"batch size {study.run.study.batch_size:>6}: {describe(study)}")

    def say(self, sentence: str) -> None:
        """Print it."""
        print(sentence, file=sys.stderr, flush=True)
        self._shown = time.perf_counter()


class LiveDisplay(SilentDisplay):
    """A table on stderr that is redrawn in place."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True)
        self._live = Live(console=self._console, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        self._live.__exit__(*details)

    def show(self, studies: Sequence[StudyProgress], num_workers: int) -> None:
        """Redraw the table."""
        self._live.update(fitting_table(self._console, studies, num_workers))

    def say(self, sentence: str) -> None:
        """Print it above the table."""
        self._console.print(sentence)


class NotebookDisplay(SilentDisplay):
    """A table below the cell, redrawn in place."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._table, self._sentences = "", list[str]()
        self._shown = float("-inf")

    def __exit__(self, *details: Any) -> None:
        self._draw()

    def show(self, studies: Sequence[StudyProgress], num_workers: int) -> None:
        """Redraw the table, if it is a while since that was done."""
        self._table = _html(studies, num_workers)
        if time.perf_counter() - self._shown > CELL_SECONDS:
            self._draw()

    def say(self, sentence: str) -> None:
        """Write it below the table."""
        self._sentences.append(f"<p>{html.escape(sentence)}</p>")
        self._draw()

    def _draw(self) -> None:
        from IPython.display import HTML, display

        page = HTML("".join([self._table, *self._sentences]))
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)
        self._shown = time.perf_counter()


def make_display() -> Display:
    """Return the live table on a terminal, plain lines elsewhere: what the command line shows."""
    return LiveDisplay() if sys.stderr.isatty() else PlainDisplay()


def default_display() -> Display:
    """Return a table in a notebook and nothing elsewhere: what a call from Python shows."""
    return NotebookDisplay() if _in_notebook() else SilentDisplay()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def describe(study: StudyProgress) -> str:
    """Return where a study stands, in a line."""
    best = "goal not met" if study.best_steps is None else f"best {study.best_steps:,} steps"
    if study.run.is_finished:
        return f"finished, {best}, {spell_seconds(study.run.record.wall_seconds or 0)} of one core"
    if study.run.pack_size is None:
        return "measuring how many trials to train together" if study.is_measuring else "waits for a worker"
    value = "" if study.best_value is None else f", {study.run.study.goal.metric} {study.best_value:.4g}"
    # The trials of a search that an earlier run has ended are not counted here again.
    searched = "" if study.run.confirm_run is None else "searched, "
    return f"{searched}{_done(study)}, step {study.step or 0:,}{value}, {best}"


def _done(study: StudyProgress) -> str:
    """Return how many trials have been trained; once all are, how many replicates of the best."""
    if (confirm := study.run.confirm_run) is None:
        return f"{study.num_done}/{study.run.study.trials} trials"
    return f"{confirm.num_done}/{confirm.num_replicates} replicates"


def _cells(study: StudyProgress) -> list[str]:
    """Return the row of a study under COLUMNS."""
    left, is_finished = study.seconds_left(), study.run.is_finished
    return [
        f"{study.run.study.batch_size:,}",
        "all" if is_finished else _done(study),
        "" if is_finished or study.step is None else f"{study.step:,}",
        "" if study.best_value is None else f"{study.best_value:.4g}",
        "" if study.best_steps is None else f"{study.best_steps:,}",
        "" if left is None else "finished" if is_finished else spell_seconds(left),
    ]


def fitting_table(console: Console, studies: Sequence[StudyProgress], num_workers: int) -> Table:
    """Return the table with as many rows as a terminal has room for, one at least; a narrow one breaks its headers."""
    caption, shown = _caption(studies, num_workers), list(studies)
    while True:
        hidden = f"; {len(studies) - len(shown)} studies not shown" if len(shown) < len(studies) else ""
        table = _table(shown, caption + hidden, console.width)
        excess = len(console.render_lines(table)) - console.height
        if excess <= 0 or len(shown) == 1:
            return table
        shown = that_fit(studies, max(1, len(shown) - excess))


def _table(shown: Sequence[StudyProgress], caption: str, width: int) -> Table:
    from rich.table import Table

    table = Table(caption=caption, padding=(0, 1) if width >= NARROW else 0)
    for column in COLUMNS:
        header = column.replace(" (", "\n(") if column in UNBROKEN else column
        table.add_column(header, justify="right", no_wrap=column in UNBROKEN)
    for study in shown:
        table.add_row(*_cells(study))
    return table


def _caption(studies: Sequence[StudyProgress], num_workers: int) -> str:
    """Return what stands below the table of a run."""
    if all(study.run.is_done for study in studies):
        return "finished"
    return f"time left: {time_left(studies, num_workers)}"


def that_fit(studies: Sequence[StudyProgress], room: int) -> list[StudyProgress]:
    """Return the studies that a low terminal has room for, in their order: those in training come before the others."""
    by_need = sorted(studies, key=lambda study: not (study.run.is_training or study.is_measuring))
    wanted = by_need[:room]
    return [study for study in studies if study in wanted]


def _html(studies: Sequence[StudyProgress], num_workers: int) -> str:
    head = "".join(f"<th>{column}</th>" for column in COLUMNS)
    rows = ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(study)) + "</tr>" for study in studies]
    caption = f"<caption>{html.escape(_caption(studies, num_workers))}</caption>"
    return f"<table>{caption}<tr>{head}</tr>{''.join(rows)}</table>"
