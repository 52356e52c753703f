"""The race: which trials run, which diverged, and when a study has its answer.

The race runs in rounds, so that nothing depends on timing. Round 1 tries the first N points. Once all of
them have trained to the round's end, those that diverged before it are replaced by as many further points,
and so on until N have not diverged or the points run out. Decisions fall only at the end of a round; a
replaced trial stays replaced. The full protocol is the same thing with a fixed end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from batchlab.core.study import Study


@dataclass(frozen=True)
class Outcome:
    """What one trial did, as far as it trained."""

    trial_id: int
    last_step: int
    """As far as its curve is known; the step at which it diverged, where it did."""

    goal_step: int | None = None
    """The first evaluated step that met the goal."""

    diverged_step: int | None = None

    def is_known_to(self, end_step: int) -> bool:
        """Return whether the trial has trained to `end_step`, or to where it diverged."""
        has_diverged = self.diverged_step is not None and self.diverged_step <= self.last_step
        return has_diverged or self.last_step >= end_step

    def survives(self, end_step: int) -> bool:
        """Return whether the trial had not diverged by `end_step`."""
        return self.diverged_step is None or self.diverged_step > end_step


def best_steps(study: Study, outcomes: Iterable[Outcome]) -> int | None:
    """Return the fewest steps to the goal among trials that stay sound to the end which they set.

    A trial that meets the goal and diverges before the race it would win is over does not count.
    """
    steps = [
        outcome.goal_step
        for outcome in outcomes
        if outcome.goal_step is not None and outcome.survives(study.end_step(outcome.goal_step))
    ]
    return min(steps, default=None)


class Race:
    """The rounds of one study, replayed from the outcomes of its trials."""

    def __init__(self, study: Study, num_points: int) -> None:
        self.study, self.num_points = study, num_points
        self.rounds = [range(min(study.trials, num_points))]
        self.infeasible: set[int] = set()
        self.best_steps: int | None = None

    @property
    def end_step(self) -> int:
        """The step to which trials train, as far as is known at the end of the last round."""
        return self.study.end_step(self.best_steps)

    def known_end(self, outcomes: Mapping[int, Outcome]) -> int:
        """Return the nearest end that a trial has set and stayed sound to, while the round is still open."""
        known = [outcomes[i] for i in self.racing if i in outcomes]
        return min([self.end_step, *(end for outcome in known if (end := self._reached_end(outcome)) is not None)])

    def _reached_end(self, outcome: Outcome) -> int | None:
        if outcome.goal_step is None:
            return None
        end = self.study.end_step(outcome.goal_step)
        return end if outcome.last_step >= end and outcome.survives(end) else None

    def lacking(self, outcomes: Mapping[int, Outcome]) -> list[int]:
        """Return the trials of the rounds so far that are to train, or to train further, before the round can close.

        Outcomes that come from a smaller search may end too early. Of these, trials that have met the goal go first:
        once one of them has stayed sound to the end it sets, that end spares the others most of the way.
        """
        end = self.known_end(outcomes)
        lacking = [i for i in self.racing if i not in outcomes or not outcomes[i].is_known_to(end)]
        first = [i for i in lacking if i not in outcomes or outcomes[i].goal_step is not None]
        return first or lacking

    @property
    def racing(self) -> list[int]:
        """The trials of the rounds so far that are not infeasible: those that may set an end."""
        return [trial_id for trial_id in range(self.num_tried) if trial_id not in self.infeasible]

    @property
    def num_tried(self) -> int:
        """Points that the rounds so far have tried: trials 0 to `num_tried` - 1."""
        return self.rounds[-1].stop

    def round_of(self, trial_id: int) -> int:
        """Return the number, from 1, of the round that tried a trial."""
        return next(number for number, trials in enumerate(self.rounds, 1) if trial_id in trials)

    def close_round(self, outcomes: Mapping[int, Outcome]) -> range:
        """Decide who diverged, from the outcomes of all trials so far; return the next round's trials.

        Outcomes of later rounds, which are there when a race is replayed, do not count yet. An empty range
        means that the race is over.
        """
        tried, racing = self.num_tried, [outcomes[trial_id] for trial_id in self.racing]
        self.best_steps = best_steps(self.study, racing)
        self.infeasible |= {outcome.trial_id for outcome in racing if not outcome.survives(self.end_step)}
        missing = self.study.trials - (tried - len(self.infeasible))
        following = range(tried, min(tried + missing, self.num_points))
        if following:
            self.rounds.append(following)
        return following


def packs(trial_ids: Sequence[int], pack_size: int) -> list[tuple[int, ...]]:
    """Return the trials in groups that train together, nearly equal in size.

    >>> packs(range(10), 4)
    [(0, 1, 2, 3), (4, 5, 6), (7, 8, 9)]
    """
    num_packs = -(-len(trial_ids) // pack_size)
    small, extra = divmod(len(trial_ids), max(1, num_packs))
    starts = [pack * small + min(pack, extra) for pack in range(num_packs + 1)]
    return [tuple(trial_ids[start:stop]) for start, stop in pairwise(starts)]
