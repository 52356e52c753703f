"""Confirmed steps: the best points of a study trained again with fresh seeds, and the median of the best of them.

The fewest steps over many trials are lucky as well as good. Fresh seeds have no part in the choice of the points, so
their median is what a reader can expect of the stated configuration. The choice among a few confirmed points by their
medians makes the winner's replicates lucky, so the interval of one among several has to be the wider: simulated with
equal points, the worst case, it covers 95 % or more from one point to twenty (96.1 % for six seeds of three points).
A replicate that diverged or missed the goal ranks last.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from batchlab.analysis.answers.boundary import at_boundary
from batchlab.analysis.answers.gap import earliest_step
from batchlab.analysis.interval import NO_INTERVAL, Interval
from batchlab.core.confirmation import Confirmation
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.core.trial import Trial

MISSES = 20
"""Of so many intervals one may miss: 95 %."""


@dataclass(frozen=True, kw_only=True)
class ConfirmedSteps:
    """The median steps of the best confirmed configuration."""

    steps: float | None
    """The median over its replicates; None where half of them or more missed the goal."""

    interval: Interval
    """At least 95 %, of the median, by order statistics; without bounds where the seeds are too few for the points."""

    seeds: int
    trial: Trial
    """The trial whose point won."""

    at_boundary: tuple[str, ...]
    """Metaparameters of that point at the edge of their search range."""

    replicate_steps: tuple[int | None, ...]
    """The steps of the winner's replicates, in their order; None where one diverged or missed the goal."""

    points: int = 1
    """Among how many confirmed points it was chosen."""

    num_diverged: int = 0
    """How many of the winner's replicates diverged."""

    end_step: int
    """Where a replicate ended that had not met the goal."""

    earliest: float | None = None
    """The earliest step that these `steps` may stand for, on the grid of evaluations of the search."""

    @property
    def is_open_by_divergence(self) -> bool:
        """Whether the upper bound would be a replicate that diverged: training on would not close the interval."""
        return self.interval.high is None and 0 < lower_rank(self.seeds, self.points) <= self.num_diverged


def confirmed_steps(result: StudyResult, goal: Goal) -> ConfirmedSteps | None:
    """Return the confirmed answer of a study, or None without a confirmation for this very goal.

    >>> from dataclasses import replace
    >>> from batchlab.analysis import example_study
    >>> from batchlab.core.confirmation import Replicate
    >>> goal = Goal.read("val/classification_error < 0.08")
    >>> steps = [190, 200, 200, 210, 230, 260]
    >>> replicates = [Replicate(trial_id=3, replicate=1, goal_step=step, last_step=step) for step in steps]
    >>> made = Confirmation(goal=goal, seeds=6, trial_ids=(3,), end_step=800, replicates=replicates)
    >>> found = confirmed_steps(replace(example_study(), confirmation=made), goal)
    >>> found.steps, found.interval
    (205.0, Interval(low=190, high=260))
    """
    made = result.confirmation
    trials = {trial.trial_id: trial for trial in result.trials}
    if made is None or made.goal != goal or not made.trial_ids or not trials.keys() >= set(made.trial_ids):
        return None
    steps = {trial_id: _replicate_steps(made, trial_id) for trial_id in made.trial_ids}
    winner = min(made.trial_ids, key=lambda trial_id: _median(steps[trial_id]))  # of equals the first
    median = _median(steps[winner])
    return ConfirmedSteps(
        steps=median if math.isfinite(median) else None,
        interval=median_interval(steps[winner], len(made.trial_ids)),
        seeds=made.seeds,
        trial=trials[winner],
        at_boundary=at_boundary(trials[winner], result.search_space, result.trials),
        replicate_steps=steps[winner],
        points=len(made.trial_ids),
        num_diverged=sum(each.diverged_step is not None for each in made.replicates if each.trial_id == winner),
        end_step=made.end_step,
        earliest=earliest_step(result.steps_of(winner, goal.metric), median) if math.isfinite(median) else None,
    )


def fewest_seeds(points: int) -> int:
    """Return how many seeds of each of so many points give an interval.

    >>> fewest_seeds(1), fewest_seeds(3), fewest_seeds(4), fewest_seeds(8)
    (6, 6, 7, 8)
    """
    return next(seeds for seeds in itertools.count(1) if lower_rank(seeds, points))


def median_interval(steps: Sequence[float | None], points: int = 1) -> Interval:
    """Return the narrowest symmetric pair of order statistics that holds the median in 95 % of cases or more.

    The number of values below the median is binomial with p = 1/2. None ranks last; a bound that falls on it is None.
    Where these values were chosen by their median, `points` is among how many.

    >>> median_interval([5, 3, 9, 4, None, 6])
    Interval(low=3, high=None)
    >>> median_interval([1, 2, 3, 4, 5])
    Interval(low=None, high=None)
    """
    rank = lower_rank(len(steps), points)
    if rank == 0:
        return NO_INTERVAL
    ordered = [*sorted(step for step in steps if step is not None), *[None] * sum(step is None for step in steps)]
    return Interval(ordered[rank - 1], ordered[-rank])


def lower_rank(seeds: int, points: int = 1) -> int:
    """Return the largest j with [X(j), X(s + 1 - j)] a 95 % interval of the median; 0 where there is none.

    One set of values misses on either side with equal chance. The one with the smallest median of several misses nearly
    always by lying below, and each of the several may be the one that does.

    >>> [lower_rank(seeds) for seeds in (5, 6, 8, 9, 12, 20)]
    [0, 1, 1, 2, 3, 6]
    >>> [lower_rank(seeds, points=3) for seeds in (5, 6, 8, 9, 12, 20)]
    [0, 1, 1, 1, 2, 5]
    """
    rank, tail = 0, 1
    while max(2, points) * tail * MISSES <= 2**seeds:
        rank += 1
        tail += math.comb(seeds, rank)
    return rank


def _replicate_steps(made: Confirmation, trial_id: int) -> tuple[int | None, ...]:
    found = [replicate.goal_step for replicate in made.replicates if replicate.trial_id == trial_id]
    return (*found, *[None] * (made.seeds - len(found)))


def _median(steps: Sequence[int | None]) -> float:
    ordered = sorted(math.inf if step is None else step for step in steps)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
