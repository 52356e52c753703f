"""The boundary check: is the best point too close to the edge of the search space to be trusted?"""

from __future__ import annotations

from batchlab.core.space import Range, SearchSpace, Values
from batchlab.core.trial import Trial

MARGIN = 0.05
"""The outer share of a range, in its scaled units, that counts as its edge."""


def at_boundary(trial: Trial, search_space: SearchSpace, margin: float = MARGIN) -> tuple[str, ...]:
    """Return the searched metaparameters of `trial` that lie within `margin` of an end of their range.

    A better value may lie outside: widen the range and search again. A list of values has no edge.

    >>> from batchlab.analysis import example_study
    >>> study = example_study()
    >>> at_boundary(study.trials[0], study.search_space), at_boundary(study.trials[0], study.search_space, margin=0.3)
    ((), ('learning_rate',))
    """
    return tuple(
        name
        for name in search_space.names
        if name in trial.metaparameters and _is_at_edge(search_space[name], trial.metaparameters[name], margin)
    )


def _is_at_edge(dimension: Range | Values, value: float, margin: float) -> bool:
    if isinstance(dimension, Values):
        return False
    unit = dimension.unit(value)
    return min(unit, 1 - unit) < margin
