"""The most of everything that a spec may ask for: more is a slip of the pen, and is refused before anything is made."""

from __future__ import annotations

MOST_TRIALS = 100_000
"""Trials of one study, and replicates of its best points."""

MOST_POINTS = 1_000_000
"""Points of one study. Replicates have numbers of their own above these: see `core.confirmation`."""

MOST_BATCH_SIZES = 1_000
MOST_BATCH_SIZE = 10**18
MOST_STEPS = 10**15
"""Updates of one trial: a float holds every step up to here."""

MOST_EXAMPLES = 10**18
"""Examples of one trial: they fit into 64 bits."""

MOST_EVALUATIONS = 1_000_000
"""Evaluated steps of one trial."""

MOST_GROWTH = 1e6
"""Between two evaluated steps, and from the winner of a race to the end of the others."""

MOST_SEED = 2**128 - 1
MOST_WORKERS = 1_024
"""Worker processes of one run."""
