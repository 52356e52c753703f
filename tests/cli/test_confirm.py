"""batchlab confirm: what is refused. What it trains is tested with the runner."""

from __future__ import annotations


def test_a_sweep_of_an_own_trainer_is_confirmed_from_python(refused, small_lab):
    spec = small_lab / "sweeps" / "small" / "sweep.json"
    spec.write_text(spec.read_text().replace('"nqm"', '"gaussian"').replace('"quadratic"', '"linear"'))

    assert refused("confirm", "--lab", "lab") == (
        "batchlab: Sweep small in lab lab was trained by a trainer of your own: confirm it from Python, "
        'batchlab.confirm_sweep("lab", "small", trainer=...).\n'
    )


def test_a_model_without_seeds_has_nothing_to_confirm(refused, small_lab):
    assert "has no seeds" in refused("confirm", "--lab", "lab")
