"""A study split by the value of one metaparameter, such as label smoothing."""

from __future__ import annotations

from batchlab.analysis.trials.selection import select_trials
from batchlab.core.result import StudyResult
from batchlab.core.trial import Trial


def group_trials(result: StudyResult, name: str, missing: float | None = None) -> dict[float, StudyResult]:
    """Return one study for each value of the metaparameter `name`, in ascending order of values.

    A trial that lacks it counts as `missing` (the published data leave label smoothing out where it is 0), or belongs
    to no group where `missing` is None. To group the first N complete trials, select them first: groups share them.

    >>> from batchlab.analysis import example_study
    >>> groups = group_trials(example_study(), "label_smoothing", missing=0.0)
    >>> {value: [trial.trial_id for trial in group.trials] for value, group in groups.items()}
    {0.0: [0, 1], 0.1: [2, 3]}
    """
    trials: dict[float, list[Trial]] = {}
    for trial in result.trials:
        value = trial.metaparameters.get(name, missing)
        if value is not None:
            trials.setdefault(value, []).append(trial)
    return {value: select_trials(result, trials[value]) for value in sorted(trials)}
