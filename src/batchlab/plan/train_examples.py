"""How many examples a sweep trains on: what an epoch is, and more than any batch can hold."""

from __future__ import annotations

from batchlab.data.registry import facts
from batchlab.errors import SpecError
from batchlab.published.sizes import published_train_examples
from batchlab.store.stored_sweep import StoredSweep


def num_train_examples(sweep: StoredSweep) -> int | None:
    """Return the size of the training set of a sweep; None where that is not known."""
    if sweep.spec is None:
        return published_train_examples(sweep.workload)
    try:
        return facts(sweep.spec.workload.dataset).train_examples
    except SpecError:  # data of one's own
        return None
