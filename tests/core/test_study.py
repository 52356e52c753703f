from __future__ import annotations

import math

import pytest

from batchlab.core.evaluation import Evaluation
from batchlab.core.goal import Goal
from batchlab.core.space import SearchSpace
from batchlab.core.study import Study
from batchlab.core.workload import Workload


def make_study(**fields) -> Study:
    workload = {"dataset": "digits", "model": "fc_128", "optimizer": {"name": "momentum", "momentum": 0.9}}
    defaults = {
        "workload": Workload.model_validate(workload),
        "batch_size": 16,
        "seed": 0,
        "trials": 4,
        "attempts": 20,
        "max_steps": 1000,
        "goal": Goal.read("val/classification_error < 0.03"),
        "race_factor": 1.5,
        "sampler": "halton",
        "evaluation": Evaluation(growth=1.03),
        "search_space": SearchSpace.model_validate({"learning_rate": {"min": 0.1, "max": 1.0}}),
        "engine": {},
    }
    return Study(**{**defaults, **fields})


@pytest.mark.parametrize(
    "evaluation",
    [Evaluation(growth=1.03), Evaluation(growth=1.7), Evaluation(every=7), Evaluation(every=7, growth=1.05)],
)
@pytest.mark.parametrize("race_factor", [1.0, 1.2, 1.5, 10.0])
def test_a_race_ends_at_the_first_evaluated_step_from_its_factor_on(evaluation, race_factor):
    study = make_study(evaluation=evaluation, race_factor=race_factor)
    grid = list(evaluation.steps(1000))
    for best in grid:
        end, bound = study.end_step(best), min(race_factor * best, 1000)

        assert end in grid
        assert end >= bound
        assert not any(bound <= step < end for step in grid)


@pytest.mark.parametrize(("best", "end"), [(0, 0), (2, 4), (6, 10), (7, 12), (700, 1000), (1000, 1000)])
def test_ends_of_a_race_by_hand(best, end):
    assert make_study(evaluation=Evaluation(every=2)).end_step(best) == end


def test_without_a_winner_every_trial_trains_to_its_budget():
    assert make_study().end_step(None) == 1000


def test_the_full_protocol_ignores_the_winner():
    assert make_study(race_factor=None).end_step(10) == 1000


def test_a_better_winner_never_ends_the_race_later():
    study = make_study()
    ends = [study.end_step(best) for best in range(1001)]

    assert ends == sorted(ends)
    assert all(end >= math.ceil(min(1.5 * best, 1000)) for best, end in enumerate(ends))


def test_metaparameters_are_the_fixed_ones_and_those_of_the_point():
    assert make_study().metaparameters({"learning_rate": 0.3}) == {"momentum": 0.9, "learning_rate": 0.3}


def test_a_study_is_read_back_from_plain_data():
    for study in (make_study(), make_study(race_factor=None, goal=Goal.read("val/risk <= 0.12345678901"))):
        assert Study.parse(study.plain(), "study.json") == study


def test_a_study_stored_without_a_version_of_its_sampler_was_drawn_by_the_first():
    assert make_study().sampler_version == 1
