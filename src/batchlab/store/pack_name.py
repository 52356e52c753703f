"""The name that a pack's files go by: its trials, so that it is the same pack whenever it is lined up again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import groupby

LONGEST = 80


def pack_name(trial_ids: Sequence[int]) -> str:
    """Return the trials, ascending, as runs of numbers; of many runs the first and last trial and a digest.

    >>> pack_name([0, 1, 2, 3]), pack_name([2, 5, 6, 7])
    ('trials-0-3', 'trials-2.5-7')
    """
    runs = [[i for _, i in run] for _, run in groupby(enumerate(trial_ids), lambda pair: pair[1] - pair[0])]
    name = "trials-" + ".".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
    if len(name) <= LONGEST:
        return name
    return f"trials-{trial_ids[0]}-{trial_ids[-1]}.{hashlib.sha256(name.encode()).hexdigest()[:16]}"
