"""batchlab confirm: what is refused. What it trains is tested with the runner."""

from __future__ import annotations

import json

import pytest

from batchlab.cli.confirm import no_interval
from batchlab.core.sweep import Sweep
from batchlab.store.lab import Lab


def test_a_sweep_of_own_code_is_confirmed_by_that(refused, small_lab):
    spec = (small_lab / "sweeps" / "small" / "sweep.json").read_text()
    theirs = json.loads(spec.replace('"nqm"', '"gaussian"').replace('"quadratic"', '"linear"'))
    del theirs["digest"]
    Lab.open(small_lab).save_spec(Sweep.parse(theirs, "sweep.json"))

    assert refused("confirm", "--lab", "lab") == (
        "batchlab: Sweep small in lab lab was trained by code of your own. Run its file again with --set "
        '"sweep.confirm={seeds=6, points=3}", or give its trainer: batchlab.confirm_sweep("lab", "small", '
        "trainer=...).\n"
    )


def test_a_model_without_seeds_has_nothing_to_confirm(refused, small_lab):
    assert "has no seeds" in refused("confirm", "--lab", "lab")


def test_without_options_a_sweep_is_confirmed_as_it_says(call, mixed_lab, digits_spec):
    """One seed is too few for an interval, which is said before anything is trained."""
    asked = call("run", digits_spec, "--lab", "lab", "--workers", 1, "--set", "sweep.confirm={seeds=1, points=2}")
    answer = call("confirm", "digits-small", "--lab", "lab", "--workers", 1, "--json")

    assert (asked.code, answer.code) == (0, 0)
    assert answer.err.startswith(
        "batchlab: seeds = 1 is too few for a 95 % interval where points = 2 are confirmed; --seeds 6 is enough\n"
    )
    assert [row["confirmed"]["seeds"] for row in json.loads(answer.out)["rows"]] == [1, 1]


def test_fewer_than_a_sweep_says_are_refused(refused, call, mixed_lab, digits_spec):
    assert call("run", digits_spec, "--lab", "lab", "--set", "sweep.confirm={seeds=9, points=5}", "--only", 0).code == 0

    assert refused("confirm", "digits-small", "--lab", "lab", "--seeds", 6) == (
        "batchlab: seeds = 6 is less than the 9 that sweep digits-small is confirmed with, which can only become more. "
        "Give 9 or more, or leave it out.\n"
    )


@pytest.mark.parametrize(
    ("seeds", "points", "enough"),
    [
        (6, 3, None),  # 3 points miss in 3 of 64 cases at the most: fewer than 1 in 20
        (6, 4, 7),  # 4 of 64 are more than 1 in 20, 4 of 128 are fewer
        (7, 6, None),
        (1, 1, 6),  # one point misses on two sides: 2 of 64
        (7, 40, None),  # four trials have no more than four points
    ],
)
def test_seeds_that_are_too_few_for_an_interval_are_named_with_those_that_are_enough(
    make_digits, seeds, points, enough
):
    sweep = make_digits({"sweep.trials": 4, "sweep.confirm": {"seeds": seeds, "points": points}})

    assert no_interval(sweep) == (
        None
        if enough is None
        else f"seeds = {seeds} is too few for a 95 % interval where points = {points} are confirmed; "
        f"--seeds {enough} is enough"
    )
