"""The name that a pack's files go by: its trials, so that it is the same pack whenever it is lined up again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from itertools import groupby

LONGEST = 80
BEFORE = "before"
"""The part, or parts, that hold what a study knew before it grew."""

PATTERN = rf"(?:trials-[0-9]+(?:[.-][0-9]+)*(?:\.[0-9a-f]{{16}})?|{BEFORE}(?:-[0-9]+)?|[0-9]+-[0-9]+)(?:\.[0-9]+)?"
"""Every name that a pack may have: by its trials, of a study that grew, or of the first format, by round and place; a
pack that came from another lab may have a number more."""


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


def names_pack(name: str, trial_ids: Collection[int]) -> bool:
    """Return whether a pack of these trials may go by this name; one that does not name its trials may.

    >>> names_pack("trials-0-3", [0, 1, 2, 3]), names_pack("trials-0-3.2", [0, 1, 2, 3]), names_pack("trials-0", [1])
    (True, True, False)
    """
    if not name.startswith("trials-"):
        return True
    return re.fullmatch(rf"{re.escape(pack_name(sorted(trial_ids)))}(?:\.[0-9]+)?", name) is not None
