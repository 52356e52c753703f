"""Questions that only a fully trained study can answer: refused for a race that ended before its budget.

A race is exact in steps to result, the winner, and budgets up to its end. How good a trial would have become, and what
would have become of the others, it does not know.
"""

from __future__ import annotations

from dataclasses import replace

from batchlab.analysis.text import count
from batchlab.core.protocol import Protocol
from batchlab.core.result import StudyResult
from batchlab.errors import InputError


def is_cut_short(result: StudyResult) -> bool:
    """Return whether a race ended the trials of a study before their budget.

    >>> from batchlab.analysis import example_study
    >>> is_cut_short(example_study())
    False
    """
    return ends_early(result.protocol, result.end_step)


def ends_early(protocol: Protocol, end_step: int) -> bool:
    """Return whether training to `end_step` was ended by a race, not by the budget.

    >>> ends_early(Protocol(kind="race", max_steps=400), 300), ends_early(Protocol(kind="full", max_steps=400), 300)
    (True, False)
    """
    return protocol.kind == "race" and (protocol.max_steps is None or end_step < protocol.max_steps)


def as_known(result: StudyResult) -> StudyResult:
    """Return a study as far as all of its trials were trained: a race that ended early as one with that budget.

    >>> from batchlab.analysis import example_study
    >>> raced = replace(example_study(), protocol=Protocol(kind="race", race_factor=1.5, max_steps=20_000))
    >>> as_known(raced).protocol.kind, as_known(raced).protocol.max_steps
    ('full', 300)
    """
    return as_full(result, result.end_step) if is_cut_short(result) else result


def check_full(result: StudyResult, question: str) -> None:
    """Raise InputError where the race ended too early for `question`; the message says what would answer it.

    >>> from batchlab.analysis import example_study
    >>> raced = replace(example_study(), protocol=Protocol(kind="race", race_factor=1.5, max_steps=20_000))
    >>> check_full(raced, "The best value")
    Traceback (most recent call last):
        ...
    batchlab.errors.InputError: The best value is not known of a race that ended at step 300: run \
digits/fc_128/nesterov_momentum with protocol = "full", or ask under a budget of 300 steps or fewer.
    """
    if is_cut_short(result):
        end = count(result.end_step)
        raise InputError(
            f"{question} is not known of a race that ended at step {end}: run {result.workload} with "
            f'protocol = "full", or ask under a budget of {end} steps or fewer.'
        )


def as_full(result: StudyResult, end_step: int) -> StudyResult:
    """Return a study that was cut to `end_step` as what it now is: one whose trials all trained that long.

    Its replicates trained for another budget, so it has none.

    >>> from batchlab.analysis import example_study
    >>> as_full(example_study(), 100).end_step
    100
    """
    kind = "imported" if result.protocol.kind == "imported" else "full"
    protocol = result.protocol.model_copy(update={"kind": kind, "race_factor": None, "max_steps": end_step})
    return replace(result, protocol=protocol, end_step=end_step, confirmation=None)
