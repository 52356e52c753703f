"""Whether a stored sweep can be trained from its spec alone."""

from __future__ import annotations

import pytest

from batchlab.core.sweep import Sweep
from batchlab.run.from_spec import why_not_from_spec
from batchlab.store.stored_sweep import ImportRecord, StoredSweep


def test_a_spec_that_names_all_it_needs_is_enough(make_nqm):
    assert why_not_from_spec(StoredSweep.run(make_nqm())) is None


def test_an_imported_sweep_has_no_spec():
    record = ImportRecord.parse({"name": "old", "workload": "a/b/c", "batch_sizes": [8], "source": {}}, "import.json")

    assert why_not_from_spec(StoredSweep.imported(record)) == "was imported: it cannot be trained here"


def test_code_of_ones_own_is_not_in_the_spec(make_scripted):
    assert why_not_from_spec(StoredSweep.run(make_scripted())) == "was trained by code of your own"


@pytest.mark.parametrize("loop", [{"loop": "own"}, {"command": "python train.py {learning_rate}"}])
def test_a_loop_is_never_started_by_a_stored_spec(make_scripted, loop):
    plain = make_scripted().plain()
    del plain["engine"], plain["sweep"]["evaluate"]
    sweep = Sweep.parse({**plain, "workload": loop}, "own")

    assert "which a stored sweep never starts" in why_not_from_spec(StoredSweep.run(sweep))
