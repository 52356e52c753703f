from __future__ import annotations

import inspect

import pytest

from batchlab import analysis

FUNCTIONS = sorted(name for name in analysis.__all__ if inspect.isfunction(getattr(analysis, name)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_has_an_example(name):
    assert ">>> " in inspect.getdoc(getattr(analysis, name))


def test_the_names_of_the_published_analyses_are_there():
    wanted = {
        "first_complete_trials",
        "steps_to_result",
        "apply_step_budget",
        "apply_example_budget",
        "best_measurement",
        "normalise_steps",
        "tuned_points",
        "classify_points",
        "group_trials",
        "steps_without_best",
        "best_of",
        "confirmed_steps",
        "fit_critical_batch",
        "find_regimes",
    }

    assert wanted <= set(FUNCTIONS)
