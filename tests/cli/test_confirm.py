"""batchlab confirm: what is refused. What it trains is tested with the runner."""

from __future__ import annotations

import json

from batchlab.core.sweep import Sweep
from batchlab.store.lab import Lab


def test_a_sweep_of_an_own_trainer_is_confirmed_from_python(refused, small_lab):
    spec = (small_lab / "sweeps" / "small" / "sweep.json").read_text()
    theirs = json.loads(spec.replace('"nqm"', '"gaussian"').replace('"quadratic"', '"linear"'))
    del theirs["digest"]
    Lab.open(small_lab).save_spec(Sweep.parse(theirs, "sweep.json"))

    assert refused("confirm", "--lab", "lab") == (
        "batchlab: Sweep small in lab lab was trained by a trainer of your own: confirm it from Python, "
        'batchlab.confirm_sweep("lab", "small", trainer=...).\n'
    )


def test_a_model_without_seeds_has_nothing_to_confirm(refused, small_lab):
    assert "has no seeds" in refused("confirm", "--lab", "lab")
