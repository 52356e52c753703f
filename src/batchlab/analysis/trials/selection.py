"""Parts of a study: its first trials, some of its trials, one of its metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from batchlab.core.result import StudyResult
from batchlab.core.trial import Status, Trial
from batchlab.errors import InputError


def first_complete_trials(result: StudyResult, num_trials: int) -> StudyResult:
    """Return the study with its first `num_trials` complete trials in ascending id only: not the best ones.

    InputError where it has fewer, as with the loader of the published data: equal budgets at every batch size are what
    makes a curve.

    >>> from batchlab.analysis import example_study
    >>> [trial.trial_id for trial in first_complete_trials(example_study(), 2).trials]
    [0, 1]
    >>> first_complete_trials(example_study(), 100)
    Traceback (most recent call last):
        ...
    batchlab.errors.InputError: digits/fc_128/nesterov_momentum at batch size 64 has 3 complete trials, not the 100 \
asked for. Ask for 3 or fewer.
    """
    kept, found = result.first_complete(num_trials), result.count(Status.COMPLETE)
    if found < num_trials:
        way_out = f"Ask for {found} or fewer" if found else "Train it further"
        raise InputError(
            f"{result.workload} at batch size {result.batch_size} has {found} complete trials, not the {num_trials} "
            f"asked for. {way_out}."
        )
    return select_trials(result, kept)


def first_trials(result: StudyResult, num_trials: int | None) -> StudyResult:
    """Return the study with its first `num_trials` complete trials and what had diverged before the last of them.

    All of it where None, or where it has no more of them.

    >>> from batchlab.analysis import example_study
    >>> [trial.trial_id for trial in first_trials(example_study(), 1).trials]
    [0]
    >>> [trial.trial_id for trial in first_trials(example_study(), 3).trials]
    [0, 1, 2, 3]
    """
    kept = result.first_complete(num_trials)
    if num_trials is None or len(kept) < num_trials:
        return result
    return select_trials(result, (trial for trial in result.trials if trial.trial_id <= kept[-1].trial_id))


def select_trials(result: StudyResult, trials: Iterable[Trial]) -> StudyResult:
    """Return the study as if only these of its trials had been run, in the order of their ids.

    >>> from batchlab.analysis import example_study
    >>> study = example_study()
    >>> len(select_trials(study, [study.trials[2]]).measurements)
    2
    """
    chosen = tuple(sorted(trials, key=lambda trial: trial.trial_id))
    return replace(result, trials=chosen, measurements=result.rows_of(chosen))


def select_metric(result: StudyResult, metric: str) -> StudyResult:
    """Return the study with this one metric, so that what follows need not carry the others along.

    >>> from batchlab.analysis import example_study
    >>> list(select_metric(example_study(), "val/classification_error").measurements.metrics)
    ['val/classification_error']
    """
    rows = result.measurements
    metrics = {name: values for name, values in rows.metrics.items() if name == metric}
    return replace(result, measurements=replace(rows, metrics=metrics))
