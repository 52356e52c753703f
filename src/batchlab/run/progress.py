"""What a person sees while a sweep runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from batchlab.core.duration import spell_seconds
from batchlab.run.study_run import StudyRun

if TYPE_CHECKING:
    from rich.table import Table

PLAIN_SECONDS = 10.0
"""Between two plain lines, when nothing has finished."""

STEP_OVERHEAD = 0.002
"""Seconds that a step costs at any batch size, for a guess: below it a smaller batch is not taken to be faster."""


class StudyProgress:
    """How far one study is, and how long the rest of it may take."""

    def __init__(self, run: StudyRun) -> None:
        self.run = run
        self.seconds_per_trial_step: float | None = None
        self.guessed_seconds_per_trial_step: float | None = None
        self._steps: dict[str, int] = {}
        self._live: dict[str, int] = {}
        self._started: dict[str, float] = {}
        self._best_steps: int | None = None

    def start(self, name: str, num_trials: int) -> None:
        """A pack begins, or goes on after a pause."""
        self._steps.setdefault(name, 0)
        self._live.setdefault(name, num_trials)
        self._started[name] = time.perf_counter()

    def advance(self, name: str, step: int, num_live: int, best_steps: int | None) -> None:
        """A pack has been evaluated."""
        if step > self._steps[name] > 0:
            elapsed = time.perf_counter() - self._started[name]
            self.seconds_per_trial_step = elapsed / ((step - self._steps[name]) * max(1, num_live))
        self._steps[name], self._live[name], self._started[name] = step, num_live, time.perf_counter()
        if best_steps is not None:
            self._best_steps = min(best_steps, self._best_steps or best_steps)

    def finish(self, name: str) -> None:
        """A pack has ended."""
        del self._steps[name], self._live[name], self._started[name]

    @property
    def best_steps(self) -> int | None:
        """The fewest steps to the goal so far."""
        if self.run.is_finished:
            return self.run.record.best_steps
        known = [steps for steps in (self._best_steps, self.run.race.best_steps) if steps is not None]
        return min(known, default=None)

    @property
    def num_done(self) -> int:
        """Trials that have trained to the end without diverging."""
        return sum(outcome.diverged_step is None for outcome in self.run.outcomes.values())

    def seconds_left(self) -> float | None:
        """Return the processor time that the study may still need: at most, while no trial has met the goal."""
        if self.run.is_finished:
            return 0.0
        seconds_per_trial_step = self.seconds_per_trial_step or self.guessed_seconds_per_trial_step
        if seconds_per_trial_step is None:
            return None
        end_step = self.run.study.end_step(self.best_steps)
        running = sum((end_step - step) * self._live[name] for name, step in self._steps.items() if step < end_step)
        waiting = max(0, self.run.study.trials - self.num_done - sum(self._live.values()))
        return (running + waiting * end_step) * seconds_per_trial_step


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
    """A line on stderr whenever a study finishes, and every few seconds in between."""

    def __init__(self) -> None:
        self._finished: set[int] = set()
        self._shown = time.perf_counter()

    def show(self, studies: Sequence[StudyProgress], num_workers: int) -> None:
        """Print a line for each newly finished study, or one for all if it has been quiet for a while."""
        for study in studies:
            if study.run.is_finished and study.run.study.batch_size not in self._finished:
                self._finished.add(study.run.study.batch_size)
                self.say(f"batch size {study.run.study.batch_size:>6}: {_status(study)}")
        if time.perf_counter() - self._shown > PLAIN_SECONDS:
            running = [f"{s.run.study.batch_size} ({_status(s)})" for s in studies if s.run.running]
            left = time_left(studies, num_workers)
            self.say(f"{len(self._finished)}/{len(studies)} studies; {left} left; running: {', '.join(running)}")

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
        self._live.update(_table(studies, num_workers))

    def say(self, sentence: str) -> None:
        """Print it above the table."""
        self._console.print(sentence)


def make_display() -> Display:
    """Return the live table on a terminal, plain lines elsewhere."""
    return LiveDisplay() if sys.stderr.isatty() else PlainDisplay()


def time_left(studies: Sequence[StudyProgress], num_workers: int) -> str:
    """Return how long the rest may take, as a person says it: an upper bound while a goal is unmet."""
    _guess_rates(studies)
    left = [seconds for study in studies if (seconds := study.seconds_left()) is not None]
    if len(left) < len(studies):
        return "unknown time"
    is_bound = any(study.best_steps is None and not study.run.is_finished for study in studies)
    return ("at most " if is_bound else "about ") + spell_seconds(sum(left) / num_workers)


def _guess_rates(studies: Sequence[StudyProgress]) -> None:
    """Give studies that have not begun the rate of the nearest one that has, by batch size."""
    known = [study for study in studies if study.seconds_per_trial_step is not None]
    for study in studies:
        if study.seconds_per_trial_step is None and known:
            size = study.run.study.batch_size
            nearest = min(known, key=lambda other: abs(math.log(other.run.study.batch_size / size)))
            seconds = nearest.seconds_per_trial_step or 0.0
            scaled = seconds * size / nearest.run.study.batch_size
            study.guessed_seconds_per_trial_step = max(scaled, min(seconds, STEP_OVERHEAD))


def _status(study: StudyProgress) -> str:
    best = "goal not met" if study.best_steps is None else f"best {study.best_steps:,} steps"
    if study.run.is_finished:
        return f"finished, {best}, {spell_seconds(study.run.record.wall_seconds or 0)} of one core"
    return f"{study.num_done}/{study.run.study.trials} trials, {best}"


def _table(studies: Sequence[StudyProgress], num_workers: int) -> Table:
    from rich.table import Table

    table = Table(caption=f"time left: {time_left(studies, num_workers)}")
    for column in ("batch size", "trials done", "best steps so far", "time left (one core)"):
        table.add_column(column, justify="right")
    for study in studies:
        left = study.seconds_left()
        table.add_row(
            f"{study.run.study.batch_size:,}",
            "all" if study.run.is_finished else f"{study.num_done}/{study.run.study.trials}",
            "" if study.best_steps is None else f"{study.best_steps:,}",
            "" if left is None else spell_seconds(left) if left else "finished",
        )
    return table
