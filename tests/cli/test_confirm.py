"""batchlab confirm: what is refused. What it trains is tested with the runner."""

from __future__ import annotations

import json

from batchlab.core.sweep import Sweep
from batchlab.store.lab import Lab


def test_a_sweep_of_own_code_is_confirmed_by_that(refused, small_lab):
    spec = (small_lab / "sweeps" / "small" / "sweep.json").read_text()
    theirs = json.loads(spec.replace('"nqm"', '"gaussian"').replace('"quadratic"', '"linear"'))
    del theirs["digest"]
    Lab.open(small_lab).save_spec(Sweep.parse(theirs, "sweep.json"))

    assert refused("confirm", "--lab", "lab") == (
        "batchlab: Sweep small in lab lab was trained by code of your own: run its file of Python again with --set "
        '"sweep.confirm={seeds=6, points=3}", or confirm it from Python, batchlab.confirm_sweep("lab", "small", '
        "trainer=...).\n"
    )


def test_a_model_without_seeds_has_nothing_to_confirm(refused, small_lab):
    assert "has no seeds" in refused("confirm", "--lab", "lab")
