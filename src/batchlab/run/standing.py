"""How far a pack in training is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Standing:
    """How far a pack is, as it reports after each evaluation."""

    step: int
    num_live: int
    best_steps: int | None = None
    """The fewest steps to the goal among its trials so far."""

    best_value: float | None = None
    """The best value of the goal's metric so far, over all its trials."""

    num_evaluations: int = 0
    evaluation_seconds: float = 0.0
    """Both since the pack began, or went on."""
