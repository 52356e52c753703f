"""Generators as loops: what they are given, and what they may yield."""

from __future__ import annotations

import pytest

from batchlab.core.space import SearchSpace
from batchlab.engine.base import Point
from batchlab.errors import SpecError, TrainerError
from batchlab.loops.generator import GeneratorTrainer


def reports_of(loop, study, place):
    return list(GeneratorTrainer(loop).reports(study, Point(3, {"learning_rate": 0.25}), place, 0, 0))


def test_a_loop_is_given_what_it_has_parameters_for(make_study, tmp_path):
    given = {}

    def all_of_it(batch_size, seed, max_steps, checkpoint, **metaparameters):
        given.update(locals())
        yield 1, {"val/loss": 0.5}

    def some(learning_rate, batch_size, seed=0):
        given["seed"] -= seed
        yield 1, {"val/loss": learning_rate}

    assert [report.step for report in reports_of(all_of_it, make_study(), tmp_path)] == [1]
    assert given["batch_size"] == 8 and given["max_steps"] == 100 and given["metaparameters"] == {"learning_rate": 0.25}
    assert given["checkpoint"] == str(tmp_path / "checkpoint")
    assert GeneratorTrainer(all_of_it).resumes and not GeneratorTrainer(some).resumes
    assert reports_of(some, make_study(), tmp_path)[0].metrics == {"val/loss": 0.25}
    assert given["seed"] == 0  # the same trial has the same seed


def test_whole_numbers_are_given_as_such(make_study, tmp_path):
    given = {}

    def loop(batch_size, seed, **metaparameters):
        given.update(metaparameters)
        yield 1, {"val/loss": 0.5}

    space = {
        "width": {"min": 4, "max": 16, "type": "integer"},
        "layers": {"values": [1, 2]},
        "dropout": {"values": [0, 0.1]},
        "learning_rate": {"min": 0.5, "max": 4.0},
    }
    study = make_study().model_copy(update={"search_space": SearchSpace.model_validate(space)})
    point = Point(3, {"width": 10.0, "layers": 2.0, "dropout": 0.0, "learning_rate": 2.0})
    list(GeneratorTrainer(loop).reports(study, point, tmp_path, 0, 0))

    assert {name: type(value) for name, value in given.items()} == {
        "width": int,
        "layers": int,
        "dropout": float,
        "learning_rate": float,
    }


def test_it_is_closed_where_the_race_is_over(make_study, tmp_path):
    closed = []

    def endless(batch_size, seed, learning_rate):
        try:
            while True:
                yield 1, {"val/loss": 1.0}
        finally:
            closed.append(True)

    reports = GeneratorTrainer(endless).reports(make_study(), Point(0, {"learning_rate": 0.1}), tmp_path, 0, 0)
    next(reports)
    reports.close()

    assert closed == [True]


@pytest.mark.parametrize("name", ["batch_size", "seed", "max_steps", "checkpoint"])
def test_what_every_loop_is_told_cannot_be_searched(make_study, name):
    """The value of the search would have taken the place of the trial's own."""
    with pytest.raises(SpecError, match=f"search_space.{name}: every loop is told its {name}; give this another name"):
        GeneratorTrainer(lambda **given: None).check(make_study(space=("learning_rate", name)))


@pytest.mark.parametrize(
    ("loop", "sentence"),
    [
        (lambda seed, learning_rate: None, "has no parameter `batch_size`: every trial is given one"),
        (lambda batch_size, seed: None, "has no parameter `learning_rate`"),
        (lambda batch_size, seed, learning_rate, width: None, "needs `width`, which is not in the search space"),
    ],
)
def test_a_loop_that_takes_something_else_is_one_sentence(make_study, loop, sentence):
    with pytest.raises(SpecError) as caught:
        GeneratorTrainer(loop).check(make_study())

    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (5, r"loop\(\) yields 5: let it `yield step, \{\"val/loss\": loss\}`"),
        ((5, 0.3), r"Trial 3 at batch size 8: loop\(\) yields 0.3 at step 5: report a table of metrics"),
        ((-5, {}), r"loop\(\) yields step = -5 is no whole number"),
    ],
)
def test_what_it_must_not_yield_is_one_sentence(make_study, tmp_path, said, sentence):
    def loop(batch_size, seed, learning_rate):
        yield said

    with pytest.raises(TrainerError, match=sentence):
        reports_of(loop, make_study(), tmp_path)


def test_a_function_that_yields_nothing_is_one_sentence(make_study, tmp_path):
    with pytest.raises(TrainerError, match=r"returned float: let it `yield step, metrics`"):
        reports_of(lambda batch_size, seed, learning_rate: 0.3, make_study(), tmp_path)
