"""Whether a stored sweep can be trained from its spec alone."""

from __future__ import annotations

from batchlab.errors import SpecError
from batchlab.spec.check import check_sweep
from batchlab.store.stored_sweep import StoredSweep


def why_not_from_spec(stored: StoredSweep) -> str | None:
    """Return what keeps a stored sweep from being trained by its spec, as a sentence goes on; None where nothing does.

    A spec names no code: what its user has written is in a file, or was given to `run_sweep`.
    """
    if stored.spec is None:
        return "was imported: it cannot be trained here"
    if stored.spec.workload.is_own_loop:
        return "was trained by a loop of your own, which a stored sweep never starts"
    try:
        check_sweep(stored.spec)
    except SpecError:
        return "was trained by code of your own"
    return None
