"""What is said of the cost of training."""

from __future__ import annotations

from batchlab.report.words.training import training_cost


def test_what_the_race_saved_is_told_against_the_full_protocol_and_of_a_race_alone():
    cost = {"trained_steps": 12_000, "full_steps": 48_000, "protocol": "race"}

    assert training_cost(cost) == (
        "The search trained 12,000 steps, where every trial to its budget would be 48,000 (4 times)."
    )
    assert "(1,000 times)" in training_cost({**cost, "full_steps": 12_000_000})
    assert training_cost({**cost, "protocol": "full"}) == "The search trained 12,000 steps."
    assert training_cost({"trained_steps": 12_000}) == "The search trained 12,000 steps."
    assert training_cost({**cost, "confirming_steps": 900}).endswith("; confirming the best points took 900 more.")
    assert training_cost({"protocol": "full"}) is None
