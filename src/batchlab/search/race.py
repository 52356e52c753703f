"""The race: which trials run, which diverged, and when a study has its answer.

The race runs in rounds, so that nothing depends on timing. Round 1 tries the first N points. Once all of
them have trained to the round's end, those that diverged before it are replaced by as many further points,
and so on until N have not diverged or the points run out. Decisions fall only at the end of a round; a
replaced trial stays replaced. The full protocol is the same thing with a fixed end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from batchlab.core.study import Study


@dataclass(frozen=True)
class Outcome:
    """What one trial did, as far as it trained."""

    trial_id: int
    last_step: int
    goal_step: int | None = None
    """The first evaluated step that met the goal."""

    diverged_step: int | None = None

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
        racing = [outcome for trial_id, outcome in outcomes.items() if trial_id not in self.infeasible]
        return min([self.end_step, *(end for outcome in racing if (end := self._reached_end(outcome)) is not None)])

    def _reached_end(self, outcome: Outcome) -> int | None:
        if outcome.goal_step is None:
            return None
        end = self.study.end_step(outcome.goal_step)
        return end if outcome.last_step >= end and outcome.survives(end) else None

    def close_round(self, outcomes: Mapping[int, Outcome]) -> range:
        """Decide who diverged, from the outcomes of all trials so far; return the next round's trials.

        Outcomes of later rounds, which are there when a race is replayed, do not count yet. An empty range
        means that the race is over.
        """
        tried = self.rounds[-1].stop
        racing = [outcomes[trial_id] for trial_id in range(tried) if trial_id not in self.infeasible]
        self.best_steps = best_steps(self.study, racing)
        self.infeasible |= {outcome.trial_id for outcome in racing if not outcome.survives(self.end_step)}
        missing = self.study.trials - (tried - len(self.infeasible))
        following = range(tried, min(tried + missing, self.num_points))
        if following:
            self.rounds.append(following)
        return following


def packs(trial_ids: range, pack_size: int) -> list[range]:
    """Return the trials in groups that train together, nearly equal in size.

    >>> packs(range(10), 4)
    [range(0, 4), range(4, 7), range(7, 10)]
    """
    num_packs = -(-len(trial_ids) // pack_size)
    small, extra = divmod(len(trial_ids), max(1, num_packs))
    starts = [pack * small + min(pack, extra) for pack in range(num_packs + 1)]
    return [trial_ids[start:stop] for start, stop in pairwise(starts)]
