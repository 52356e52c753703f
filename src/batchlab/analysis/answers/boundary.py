"""The boundary check: is the best point too close to the edge of the search space to be trusted?

It is where no better point can have been seen beyond it: it is the outermost of the points tried in that dimension,
or it lies in the outer share of the range that n points are expected to leave empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from batchlab.core.space import Range, SearchSpace, Values
from batchlab.core.trial import Status, Trial

MARGIN = 0.05
"""The least outer share of a range, in its scaled units, that counts as its edge."""


def at_boundary(trial: Trial, search_space: SearchSpace, tried: Iterable[Trial]) -> tuple[str, ...]:
    """Return the searched metaparameters of `trial` that lie at an edge of what was tried.

    A better value may lie outside: widen the range and search again. Diverged points count as tried. A list of values
    has no edge, and neither has a lower end of 0: no metaparameter here can be negative, so no wider range exists.

    >>> from batchlab.analysis import example_study
    >>> study = example_study()
    >>> [at_boundary(trial, study.search_space, study.trials) for trial in study.trials[:2]]
    [('learning_rate',), ()]
    """
    points = [search_space.read(other.metaparameters) for other in tried if other.status is not Status.INCOMPLETE]
    best = search_space.read(trial.metaparameters)
    return tuple(
        name
        for name in search_space.names
        if name in best and _is_at_edge(search_space[name], best[name], [p[name] for p in points if name in p])
    )


def _is_at_edge(dimension: Range | Values, value: float, tried: Sequence[float]) -> bool:
    if isinstance(dimension, Values) or dimension.min == dimension.max:
        return False
    margin = max(MARGIN, 1 / (len(tried) + 1))
    from_min = abs(dimension.share(value) - dimension.share(dimension.ends[0]))
    is_low = from_min < margin or value <= min(tried, default=value)
    is_high = 1 - from_min < margin or value >= max(tried, default=value)
    return is_high or (is_low and dimension.min != 0)
