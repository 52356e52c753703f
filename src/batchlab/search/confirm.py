"""Which points of a finished search are trained again, and for how long."""

from __future__ import annotations

from collections.abc import Iterable

from batchlab.core.study import Study
from batchlab.search.race import Outcome

LONGEST = 4
"""A replicate that has not met the goal ends at this multiple of the fewest steps. Seeds alone move steps by tens of
per cent: ended at 1.5 times, the interval would be open in most studies."""


def points_to_confirm(study: Study, outcomes: Iterable[Outcome]) -> tuple[int, ...]:
    """Return the trials whose points are confirmed, fewest steps first; ties go to the smallest id.

    `outcomes` are those of the complete trials. Points count that met the goal within `confirm_within` times the
    fewest steps: as far as a race has trained.
    """
    assert study.confirm is not None
    met = sorted((outcome.goal_step, outcome.trial_id) for outcome in outcomes if outcome.goal_step is not None)
    close = [trial_id for steps, trial_id in met if steps <= study.confirm_within * met[0][0]]
    return tuple(close[: study.confirm.points])


def end_of_replicates(study: Study, fewest_steps: int) -> int:
    """Return the evaluated step at which a replicate ends that has not met the goal."""
    return min(study.max_steps, study.evaluation.first_step_from(LONGEST * fewest_steps))
