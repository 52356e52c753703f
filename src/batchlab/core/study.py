"""Study: the metaparameter search for one workload at one batch size."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

from batchlab.core.confirmation import Confirm
from batchlab.core.evaluation import Evaluation
from batchlab.core.goal import Goal
from batchlab.core.space import SearchSpace
from batchlab.core.value import Value
from batchlab.core.workload import AnyWorkload

GROWS = frozenset({"trials", "attempts", "max_steps", "race_factor", "confirm", "confirm_within"})
"""What of a study may become more while it stays the same study."""


class Study(Value):
    """One workload at one batch size, with its search space and budget."""

    workload: AnyWorkload
    batch_size: int
    """Examples in each update; where the batch size is scheduled, the one that a trial starts with."""

    seed: int
    trials: int
    """Trials that must end without diverging."""

    attempts: int
    """Points tried at the most, but for a grid, which has its own."""

    max_steps: int
    max_examples: int | None = None
    """Examples after which a trial ends, where its batch size is scheduled; elsewhere `max_steps` says it all."""

    goal: Goal
    race_factor: float | None = None
    """None means the full protocol: every trial trains to `max_steps`."""

    sampler: str
    sampler_version: int = 1
    """The rule by which the sampler draws; studies stored before it had a version went by the first."""

    evaluation: Evaluation
    search_space: SearchSpace
    engine: dict[str, Any]
    confirm: Confirm | None = None
    confirm_within: float = 1.5
    """Points are confirmed that met the goal within this multiple of the fewest steps: the race factor of the spec,
    under the full protocol too, so that both confirm the same ones."""

    def end_step(self, best_steps: int | None) -> int:
        """Return the step at which every trial may stop, once the goal was first met at `best_steps`.

        Only the first trial to meet the goal decides steps to result, so training the others past it
        cannot change the answer; the race factor trains them a little further, for the interval. The end
        is an evaluated step, so that the rows of a trial do not depend on when it learnt of the winner.
        """
        if best_steps is None or self.race_factor is None or self.race_factor * best_steps >= self.max_steps:
            return self.max_steps
        return min(self.max_steps, self.evaluation.first_step_from(self.race_factor * best_steps))

    def is_evaluated(self, step: int) -> bool:
        """Return whether a trial is evaluated at this step: on the grid, or at the end of its budget."""
        return step == self.max_steps or self.evaluation.first_step_from(step) == step

    def searches_as(self, other: Study) -> bool:
        """Return whether both ask for the same search, whatever is confirmed afterwards."""
        return self._search() == other._search()

    def _search(self) -> Study:
        return self.model_copy(update={"confirm": None, "confirm_within": 1.5})

    @property
    def num_points(self) -> int:
        """How many points there are to try: all of a grid, which may be more or fewer than `attempts`."""
        if self.sampler != "grid" or not self.search_space.names:
            return self.attempts
        return math.prod(self.search_space[name].grid_size() for name in self.search_space.names)

    @property
    def num_replicates(self) -> int:
        """How many replicates confirm it, at the most."""
        return 0 if self.confirm is None else self.confirm.seeds * min(self.confirm.points, self.trials)

    def replicate_steps(self, fewest_steps: int) -> int:
        """Return where a replicate is expected to have met the goal: a little later than the best trial did."""
        return min(self.max_steps, math.ceil(self.confirm_within * fewest_steps))

    @property
    def fingerprint(self) -> str:
        """A short text that tells the study from every other, however much each has grown."""
        fixed = self.model_dump(mode="json", exclude=set(GROWS), exclude_defaults=True)
        return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()[:16]

    def metaparameters(self, point: dict[str, float]) -> dict[str, float]:
        """Return the fixed metaparameters of the workload together with those of a point; words are options."""
        fixed = self.workload.fixed_metaparameters.items()
        return {**{name: value for name, value in fixed if not isinstance(value, str | bool)}, **point}
