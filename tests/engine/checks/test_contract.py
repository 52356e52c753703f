"""Each way to break the contract of a trainer, with a small trainer that does, and the one sentence it gets."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.sweep import Sweep
from batchlab.engine.base import Point, UpTo, wanted_pack_size
from batchlab.engine.checks import contract
from batchlab.engine.checks.contract import check_program, check_promises
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.errors import SpecError, TrainerError

SWEEP = {
    "name": "own",
    "workload": {"dataset": "own", "model": "own", "optimizer": "own"},
    "sweep": {"batch_sizes": [8], "trials": 4, "max_steps": 100, "goal": "val/loss < 0.1"},
    "search_space": {"learning_rate": {"min": 0.1, "max": 0.5}},
}
POINTS = [Point(0, {"learning_rate": 0.1}), Point(1, {"learning_rate": 0.3})]


def make_study(**changes):
    return Sweep.parse({**SWEEP, "engine": {}, **changes}, "own").study(8)


class Good:
    """A program that keeps the contract: noisy descent of a parabola."""

    def __init__(self, study, points, state):
        self.study, self.step, self.diverged = study, 0, {}
        self.trial_ids = np.array([point.trial_id for point in points])
        self.rates = np.array([point.metaparameters["learning_rate"] for point in points])
        self.positions = np.ones(len(points))
        if state is not None:
            self.restore(state)

    def restore(self, state):
        self.step, self.positions = int(state["step"]), state["positions"]

    def evaluate(self):
        return {"val/loss": self.positions**2}

    def noise(self, trial_id):
        return np.random.default_rng([self.study.seed, trial_id, self.step]).normal()

    def advance(self, target):
        noise = np.array([self.noise(trial_id) for trial_id in self.trial_ids])
        self.positions = self.positions * (1 - self.rates) + 0.1 * noise
        self.step += 1

    def state(self):
        return {"step": np.array(self.step), "positions": self.positions}


class Trainer:
    """Makes programs of one class."""

    program_class = Good

    def metrics(self, study):
        return ("val/loss", "val/accuracy")

    def program(self, study, points, state=None):
        return self.program_class(study, points, state)


def trainer_of(program, /, **members):
    return type("Own", (Trainer,), {"program_class": program, **members})()


def program(**members):
    """Return the class of a program that keeps the contract but for these members."""
    return type("Bad", (Good,), members)


def refusal(trainer, study=None, points=POINTS):
    """Return the one sentence that a trainer gets."""
    with pytest.raises((TrainerError, SpecError)) as caught:
        check_promises(trainer, study or make_study())
        check_program(trainer, study or make_study(), points)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_trainer_that_keeps_the_contract_passes():
    check_promises(Trainer(), make_study())
    check_program(Trainer(), make_study(), POINTS)


@pytest.mark.parametrize("max_steps", [1, 2, 3, 50])
def test_short_budgets_are_not_passed(max_steps):
    study, targets = make_study().model_copy(update={"max_steps": max_steps}), []

    def advance(self, target):
        targets.append(target)
        Good.advance(self, target)

    check_program(trainer_of(program(advance=advance)), study, POINTS)

    assert max(targets) == min(4, max_steps)


def test_the_quadratic_model_passes(make_nqm):
    study = make_nqm().study(16)

    check_promises(QuadraticTrainer(), study)
    check_program(QuadraticTrainer(), study, POINTS)


def test_networks_pass(trainer, make_digits_study):
    study = make_digits_study().model_copy(update={"trials": 4})
    points = [Point(trial_id, {"learning_rate": rate, "momentum": 0.9}) for trial_id, rate in enumerate((0.01, 0.1))]

    check_promises(trainer, study)
    check_program(trainer, study, points)


# What the trainer says of itself


def test_a_class_in_place_of_a_trainer():
    assert refusal(Trainer) == "The trainer is the class Trainer, not an object of it: give Trainer()."


@pytest.mark.parametrize("method", ["metrics", "program"])
def test_a_missing_method_of_the_trainer(method):
    sentence = refusal(trainer_of(Good, **{method: None}))

    assert sentence == f"The trainer (Own) has no method `{method}(study, ...)`: see docs/extending.md."


def test_a_function_in_place_of_a_trainer():
    assert "has no method `metrics(study, ...)`" in refusal(lambda study: 3)


@pytest.mark.parametrize("metrics", ["val/loss", None, ("val/loss", 3), ()])
def test_metrics_that_are_no_names(metrics):
    sentence = refusal(trainer_of(Good, metrics=lambda self, study: metrics))

    assert sentence.startswith(f"Own.metrics(study) is {metrics!r}")
    assert 'give names, ("val/loss",).' in sentence


def test_a_goal_that_is_not_measured():
    sentence = refusal(trainer_of(Good, metrics=lambda self, study: ["val/lass"]))

    assert sentence == 'goal: Unknown metric "val/loss". Did you mean "val/lass"? Known: val/lass.'


def test_a_study_that_the_trainer_refuses():
    def check(self, study):
        raise ValueError("no learning rate above 0.4")

    assert refusal(trainer_of(Good, check=check)) == "Own.check refuses batch size 8: no learning rate above 0.4"


def test_a_study_that_the_trainer_refuses_with_an_error_of_ours():
    def check(self, study):
        raise SpecError("Use less.")

    assert refusal(trainer_of(Good, check=check)) == "Use less."


@pytest.mark.parametrize("size", [0, -3, 2.5, True, None, "auto", UpTo(0)])
def test_a_pack_size_that_is_none(size):
    sentence = refusal(trainer_of(Good, pack_size=lambda self, study: size))

    assert sentence.startswith(f"Own.pack_size(study) is {size!r}")
    assert "a whole number from 1, or batchlab.UpTo(most)" in sentence


@pytest.mark.parametrize(("size", "wanted"), [(1, 1), (3, 3), (UpTo(2), UpTo(2)), (UpTo(64), UpTo(4))])
def test_a_pack_size_that_is_a_plain_value(size, wanted):
    """No pack is larger than the study's 4 trials."""
    trainer = trainer_of(Good, pack_size=size)
    check_promises(trainer, make_study())

    assert wanted_pack_size(trainer, make_study()) == wanted


def test_a_plain_pack_size_that_is_none():
    sentence = refusal(trainer_of(Good, pack_size=0))

    assert sentence.startswith("Own.pack_size is 0 (int): give how many trials train together")


@pytest.mark.parametrize(
    ("method", "value", "words"),
    [
        (
            "program",
            lambda self, study, points: None,
            "Own.program(study, points) cannot be called as program(study, points, state): "
            "write `def program(self, study, points, state=None)`.",
        ),
        (
            "program",
            lambda self, study, points, state: None,
            "Own.program(study, points, state) cannot be called as program(study, points): "
            "write `def program(self, study, points, state=None)`.",
        ),
        (
            "metrics",
            lambda self: (),
            "Own.metrics() cannot be called as metrics(study): write `def metrics(self, study)`.",
        ),
        ("metrics", ("a",), "Own.metrics is ('a',) (tuple), not a method: write `def metrics(self, study)`."),
        ("check", 3, "Own.check is 3 (int), not a method: write `def check(self, study)`."),
        ("check", lambda self: None, "Own.check() cannot be called as check(study): write `def check(self, study)`."),
        (
            "pack_size",
            lambda self: 1,
            "Own.pack_size() cannot be called as pack_size(study): write `def pack_size(self, study)`.",
        ),
        (
            "check_shared",
            lambda self, study: None,
            "Own.check_shared(study) cannot be called as check_shared(study, num_workers): "
            "write `def check_shared(self, study, num_workers)`.",
        ),
    ],
)
def test_a_method_of_the_trainer_that_cannot_be_called(method, value, words):
    assert refusal(trainer_of(Good, **{method: value})) == words


def test_a_method_of_other_names_and_more_parameters():
    def program(self, *all_of_it, more=None):
        return Good(*all_of_it) if len(all_of_it) == 3 else Good(*all_of_it, None)

    trainer = trainer_of(Good, program=program, metrics=lambda self, which, more=(): ("val/loss",))
    check_promises(trainer, make_study())
    check_program(trainer, make_study(), POINTS)


# Members of a program


@pytest.mark.parametrize(
    ("member", "value", "words"),
    [
        ("state", None, "Bad.state is None (NoneType), not a method: write `def state(self)`."),
        ("evaluate", {}, "Bad.evaluate is {} (dict), not a method: write `def evaluate(self)`."),
        ("advance", 1, "Bad.advance is 1 (int), not a method: write `def advance(self, target)`."),
        (
            "advance",
            lambda self: None,
            "Bad.advance() cannot be called as advance(target): write `def advance(self, target)`.",
        ),
        (
            "state",
            lambda self, path: {},
            "Bad.state(path) cannot be called as state(): write `def state(self)`.",
        ),
    ],
)
def test_a_method_of_the_program_that_cannot_be_called(member, value, words):
    assert refusal(trainer_of(program(**{member: value}))) == words


@pytest.mark.parametrize("member", ["step", "trial_ids", "diverged"])
def test_a_missing_attribute(member):
    class Lacking(Good):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            delattr(self, member)

    assert refusal(trainer_of(Lacking)) == f"Lacking has no `{member}`: see the table in docs/extending.md."


def test_a_program_without_methods():
    class Bare:
        step, diverged, trial_ids = 0, {}, np.array([0])

    assert refusal(trainer_of(lambda *_: Bare())) == "Bare has no `evaluate`: see the table in docs/extending.md."


@pytest.mark.parametrize(
    ("member", "value", "words"),
    [
        ("step", 0.0, "Bad.step is 0.0 (float): give the number of updates, a whole number."),
        ("step", np.zeros(1), "Bad.step is an array of float64 with shape (1,)"),
        ("step", True, "Bad.step is True (bool)"),
        ("trial_ids", [0], "Bad.trial_ids is [0] (list): give a one-dimensional NumPy array of whole numbers."),
        ("trial_ids", np.array([0.0]), "Bad.trial_ids is an array of float64 with shape (1,)"),
        ("trial_ids", np.array(0), "Bad.trial_ids is an array of int64 with shape ()"),
        ("diverged", [], "Bad.diverged is [] (list): give a dict from trial id to step, both whole numbers."),
        ("diverged", {0: None}, "Bad.diverged is {0: None} (dict)"),
        ("trial_ids", np.array([], dtype=int), "trial 0 is in neither of `trial_ids` and `diverged` of Bad at step 0"),
        ("diverged", {0: 1}, "trial 0 is in both of `trial_ids` and `diverged` of Bad at step 0"),
        ("trial_ids", np.array([0, 7]), "Bad.trial_ids is [0, 7] at the start, not [0]: the trial_id of each point"),
        ("step", 3, "Bad begins at step 3, not at 0"),
    ],
)
def test_an_attribute_of_another_kind(member, value, words):
    def init(self, *arguments):
        Good.__init__(self, *arguments)
        setattr(self, member, value)

    assert words in refusal(trainer_of(program(__init__=init)))


def test_numbers_of_numpy_are_numbers():
    def init(self, *arguments):
        Good.__init__(self, *arguments)
        self.step = np.int64(self.step)

    check_program(trainer_of(program(__init__=init)), make_study(), POINTS)


# Training


def test_an_advance_that_does_not_move():
    sentence = refusal(trainer_of(program(advance=lambda self, target: None)))

    assert sentence == "advance(2) left `step` at 0: make at least one update and count it in `step`."


def test_an_advance_past_the_target():
    def advance(self, target):
        self.step += 3

    assert "advance(2) went on to step 3" in refusal(trainer_of(program(advance=advance)))


def test_a_trial_that_leaves_without_a_word():
    def advance(self, target):
        self.step, self.trial_ids, self.positions = target, self.trial_ids[:0], self.positions[:0]

    sentence = refusal(trainer_of(program(advance=advance)))

    assert sentence.startswith("trial 0 is in neither of `trial_ids` and `diverged` of Bad at step 2")


def test_a_trial_that_diverges_is_no_breach():
    def advance(self, target):
        Good.advance(self, target)
        live = self.trial_ids != 0
        self.diverged = {0: 1}
        self.trial_ids, self.rates, self.positions = self.trial_ids[live], self.rates[live], self.positions[live]

    def restore(self, state):
        self.step, self.positions, self.diverged = int(state["step"]), state["positions"], {0: 1}
        self.trial_ids = self.trial_ids[self.trial_ids != 0]

    check_program(trainer_of(program(advance=advance, restore=restore)), make_study(), POINTS)


# Metrics


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (0.5, "is 0.5 (float)"),
        (np.float64(0.5), "(float64)"),
        ([0.5], "is [0.5] (list)"),
        (np.array(0.5), "is an array of float64 with shape ()"),
        (np.zeros(3), "is an array of float64 with shape (3,)"),
        (np.zeros((1, 1)), "is an array of float64 with shape (1, 1)"),
        (np.array([1j]), "is an array of complex128"),
        (np.array(["low"]), "is an array of <U3"),
        (np.array([None]), "is an array of object"),
    ],
)
def test_a_metric_that_is_no_array_of_numbers(values, shown):
    sentence = refusal(trainer_of(program(evaluate=lambda self: {"val/loss": values})))

    assert sentence.startswith('Bad.evaluate()["val/loss"] is ')
    assert shown in sentence
    assert sentence.endswith("give a NumPy array of 1 float64, one for each live trial, in the order of `trial_ids`.")


@pytest.mark.parametrize("at", [0, 4])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_goal_metric_that_is_no_finite_number(at, value):
    def evaluate(self):
        return {"val/loss": np.full(len(self.trial_ids), value if self.step >= at else 1.0)}

    sentence = refusal(trainer_of(program(evaluate=evaluate)))

    assert f'evaluate()["val/loss"] is {value} at step {at} for trial 0' in sentence
    assert "let a trial that diverges leave `trial_ids` and put the step into `diverged`" in sentence


def test_a_metric_of_a_program_of_ours_may_overflow():
    """A perplexity of a network that diverges, say: the next loss shows it."""

    def evaluate(self):
        return {"val/loss": np.full(len(self.trial_ids), np.inf if self.step else 1.0)}

    check_program(trainer_of(program(evaluate=evaluate, is_ours=True)), make_study(), POINTS)


def test_another_metric_may_be_missing_or_no_number():
    def evaluate(self):
        probe = {"val/accuracy": np.full(len(self.trial_ids), np.nan)} if self.step else {}
        return {**Good.evaluate(self), **probe}

    check_program(trainer_of(program(evaluate=evaluate)), make_study(), POINTS)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16])
def test_other_numbers_will_do(dtype):
    def evaluate(self):
        return {"val/loss": np.ones(len(self.trial_ids), dtype=dtype)}

    check_program(trainer_of(program(evaluate=evaluate)), make_study(), POINTS)


def test_a_metric_of_another_name():
    sentence = refusal(trainer_of(program(evaluate=lambda self: {"val/los": np.ones(1)})))

    assert "evaluate() gives a metric that metrics(study) has not named" in sentence
    assert 'Unknown metric "val/los". Did you mean "val/loss"?' in sentence


def test_a_goal_that_is_promised_and_not_measured():
    sentence = refusal(trainer_of(program(evaluate=lambda self: {"val/accuracy": np.ones(1)})))

    assert "evaluate() gives val/accuracy, but not the goal's val/loss" in sentence


def test_metrics_that_are_no_dict():
    sentence = refusal(trainer_of(program(evaluate=lambda self: 0.3)))

    assert sentence.startswith("Bad.evaluate() is 0.3 (float) at step 0 for trial 0 (batch size 8): give a dict")


# The same twice, after a stop, and beside others


def test_what_is_random_anew_each_time():
    rng = np.random.default_rng(0)
    sentence = refusal(trainer_of(program(noise=lambda self, trial_id: rng.normal())))

    assert sentence.startswith("Bad: the same point trained twice is not the same: val/loss at step 2 is ")
    assert "np.random.default_rng([study.seed, trial_id, step])" in sentence


def test_rounding_is_allowed():
    rng = np.random.default_rng(0)

    def evaluate(self):
        return {"val/loss": self.positions**2 * (1 + 1e-7 * rng.normal(size=len(self.positions)))}

    check_program(trainer_of(program(evaluate=evaluate)), make_study(), POINTS)


def test_a_divergence_that_comes_and_goes():
    made = []

    class Moody(Good):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

        def advance(self, target):
            super().advance(target)
            if self is made[0]:
                self.diverged, self.trial_ids = {0: 1}, self.trial_ids[:0]

    assert "the same point trained twice is not the same: diverged at {}" in refusal(trainer_of(Moody))


def test_a_state_that_is_no_dict():
    assert "Bad.state() is None (NoneType): give a dict" in refusal(trainer_of(program(state=lambda self: None)))


def test_a_state_that_no_checkpoint_can_hold():
    sentence = refusal(trainer_of(program(state=lambda self: {"self": self})))

    assert sentence.startswith("Bad.state()['self'] is <")
    assert sentence.endswith("give a NumPy array, which a checkpoint can hold.")


def test_a_state_that_cannot_be_restored():
    sentence = refusal(trainer_of(program(state=lambda self: {"step": np.array(self.step)})))

    assert "fails on what Bad.state() returned (KeyError: 'positions')" in sentence
    assert "or return {} to begin anew after a stop." in sentence


def test_a_state_that_is_ignored():
    sentence = refusal(trainer_of(program(restore=lambda self, state: None)))

    assert sentence.startswith("Bad.state() was taken at step 2, but the program made from it is at step 0")


def test_a_state_that_leaves_something_out():
    def restore(self, state):
        self.step = int(state["step"])

    sentence = refusal(trainer_of(program(restore=restore)))

    assert sentence.startswith("Bad: a program made from state() does not go on as the one before: val/loss at step 2")


def test_a_state_that_leaves_out_what_shows_later():
    """A velocity: the next evaluation is right, the one after the next update is not."""

    class Heavy(Good):
        def __init__(self, *arguments):
            self.velocity = 0.0
            super().__init__(*arguments)

        def advance(self, target):
            self.velocity = 0.9 * self.velocity + self.rates * self.positions
            self.positions = self.positions - self.velocity
            self.step += 1

    assert "does not go on as the one before: val/loss at step 4" in refusal(trainer_of(Heavy))


def test_no_state_begins_anew():
    """After a stop such a trial trains from step 0, to the same rows."""

    def restore(self, state):
        assert state == {}

    check_program(trainer_of(program(state=lambda self: {}, restore=restore)), make_study(), POINTS)


class OneByOne(Good):
    def __init__(self, study, points, state):
        (point,) = points
        super().__init__(study, [point], state)


def test_a_program_of_one_trial_only():
    sentence = refusal(trainer_of(OneByOne))

    assert sentence == (
        "OneByOne trains one point, but not two at once (ValueError: too many values to unpack (expected 1)): set "
        "engine.pack_size = 1 in the sweep, or give the trainer `pack_size = 1`."
    )


def test_a_program_that_takes_the_first_of_several():
    def init(self, study, points, state):
        Good.__init__(self, study, points[:1], state)

    assert "but not two at once (trial 1 is in neither" in refusal(trainer_of(program(__init__=init)))


def test_metrics_of_one_trial_only():
    def evaluate(self):
        return {"val/loss": self.positions[:1] ** 2}

    assert "but not two at once (Bad.evaluate()" in refusal(trainer_of(program(evaluate=evaluate)))


@pytest.mark.parametrize(
    ("trainer", "study"),
    [
        (trainer_of(OneByOne), make_study(engine={"pack_size": 1})),
        (trainer_of(OneByOne, pack_size=lambda self, study: 1), make_study()),
        (trainer_of(OneByOne, pack_size=1), make_study()),
        (trainer_of(OneByOne), make_study().model_copy(update={"trials": 1})),
    ],
)
def test_one_by_one_is_well_where_no_pack_is_asked_for(trainer, study):
    check_program(trainer, study, POINTS)


def test_a_trial_that_depends_on_its_pack():
    def advance(self, target):
        self.positions, self.step = self.positions * (1 - self.rates / len(self.rates)), self.step + 1

    sentence = refusal(trainer_of(program(advance=advance)))

    assert sentence.startswith("Bad: a trial beside another is not the trial alone: val/loss at step 2 is ")
    assert "engine.pack_size = 1" in sentence


def test_a_slow_program_is_trained_once(monkeypatch):
    monkeypatch.setattr(contract, "QUICK_SECONDS", -1.0)
    made = []

    class Slow(Good):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    check_program(trainer_of(Slow), make_study(), POINTS)

    assert [program.step for program in made] == [4]


def test_what_the_trainers_own_code_raises_comes_through():
    def advance(self, target):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        check_program(trainer_of(program(advance=advance)), make_study(), POINTS)
