"""Observers: the gradient of every microbatch against plain autograd, in all forms, and nothing moves for it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from batchlab.core.tokens import PADDING
from batchlab.core.workload import Named
from batchlab.engine import program as program_module
from batchlab.engine.base import Point
from batchlab.engine.forward import Packed, Single, Vectorised
from batchlab.engine.objectives import OBJECTIVES
from batchlab.engine.observer import Observer, observed_metrics
from batchlab.engine.order import ExampleOrder
from batchlab.engine.problem import Problem
from batchlab.engine.program import TorchProgram
from batchlab.engine.source import Split
from batchlab.engine.torch_trainer import TorchTrainer
from batchlab.errors import InputError, TrainerError
from batchlab.models.registry import build_model
from tests.states import equal, trained

BATCH_SIZE, STEPS = 10, 2
SIZES = {"whole": 10, "halves": 5, "ragged": 4}
NORM = "train/microbatch_gradient_norm"


class Own(nn.Module):
    """A module of the user's own, with a weight that is used twice and one that is not used at all."""

    def __init__(self):
        super().__init__()
        self.dense_0, self.norm, self.dense_1 = nn.Linear(64, 12), nn.LayerNorm(12), nn.Linear(12, 10)
        self.scale, self.unused = nn.Parameter(torch.tensor(1.5)), nn.Parameter(torch.ones(3))

    def forward(self, images):
        return self.scale * self.dense_1(self.norm(self.dense_0(self.scale * images.flatten(1))).tanh())


class NormOfMicrobatches(Observer):
    """The norm of the gradient of a microbatch's mean loss: the mean over all microbatches so far."""

    metrics = (NORM, "train/late")

    def start(self, parameters):
        return {"sum": parameters.new_zeros(len(parameters)), "count": torch.zeros(len(parameters), dtype=torch.int64)}

    def see_microbatch(self, state, microbatch):
        state["sum"] += microbatch.gradients.norm(dim=1) / microbatch.share
        state["count"] += 1

    def report(self, state):
        norms = {NORM: state["sum"] / state["count"]}
        return norms | {"train/late": state["count"].double()} if bool((state["count"] > 8).all()) else norms


class Recorded(Observer):
    """Everything that was seen, as it was."""

    metrics = ("train/nothing",)

    def __init__(self):
        self.microbatches, self.batches = [], []

    def see_microbatch(self, state, microbatch):
        self.microbatches.append(copied(microbatch))

    def see_batch(self, state, batch):
        self.batches.append(copied(batch))

    def report(self, state):
        return {}


def copied(seen):
    return {
        "step": seen.step,
        "by_parameter": {name: each.clone() for name, each in seen.by_parameter.items()},
        **{name: getattr(seen, name).clone() for name in ("gradients", "losses", "weight", "share")},
    }


@pytest.fixture
def _double():
    """Compute in float64, so that what is compared is the gradients and not their rounding."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def sentences():
    """Return 40 sentences of 1 to 7 tokens."""
    draw = np.random.default_rng(0)
    tokens = np.where(np.arange(7) < draw.integers(1, 8, (40, 1)), draw.integers(1, 20, (40, 7)), PADDING)
    return torch.from_numpy(tokens)


def pictures(*shape):
    draw = np.random.default_rng(0)
    return torch.from_numpy(draw.normal(size=(40, *shape))), torch.from_numpy(draw.integers(0, 10, 40))


TRANSFORMER = Named(name="transformer_base", layers=1, width=8, feed_forward=8, heads=2)
RESNET = Named(name="resnet_50", blocks=[1, 1], width=4)
FORMS = {
    "packed": (Packed, 3, Named(name="fc_16_16"), pictures(1, 8, 8)),
    "packed, one trial": (Packed, 1, Named(name="fc_16_16"), pictures(1, 8, 8)),
    "packed, convolutions": (Packed, 2, Named(name="simple_cnn_narrow"), pictures(1, 4, 4)),
    "single": (Single, 1, Own, pictures(1, 8, 8)),
    "single, ghost norm": (Single, 1, RESNET, pictures(3, 8, 8)),
    "single, tokens": (Single, 1, TRANSFORMER, (sentences(), sentences())),
    "vectorised": (Vectorised, 3, Own, pictures(1, 8, 8)),
    "vectorised, tokens": (Vectorised, 2, TRANSFORMER, (sentences(), sentences())),
}


def make_program(make_digits_study, form, microbatch_size=BATCH_SIZE, observers=()):
    """Return a program of some trials, whose learning rates differ."""
    kind, num_trials, model, (inputs, labels) = FORMS[form]
    classes, is_text = (20, True) if inputs.dim() == 2 else (10, False)
    inputs = inputs if is_text else inputs.to(torch.get_default_dtype())
    problem = Problem(
        make_network=model if callable(model) else lambda: build_model(model, tuple(inputs.shape[1:]), classes),
        objective=OBJECTIVES["language_model" if is_text else "classification"],
        num_classes=classes,
        train=Split(inputs, labels),
        evaluated={"val": Split(inputs, labels)},
        device=torch.device("cpu"),
    )
    points = [Point(5 + 2 * row, {"learning_rate": 0.01 * (row + 1), "momentum": 0.5}) for row in range(num_trials)]
    study = make_digits_study(batch_size=BATCH_SIZE)
    program = TorchProgram(problem, study, points, microbatch_size=microbatch_size, observers=observers)
    assert type(program._forward) is kind
    return program


def reference(program, row, step, part):
    """Return, by plain autograd, the mean loss of a microbatch of one trial, its gradient by name, and its weight."""
    problem, trial_id = program._problem, int(program.trial_ids[row])
    network = problem.network(0, trial_id)
    network.load_state_dict({name: torch.from_numpy(each) for name, each in program.weights(trial_id).items()})
    numbers = ExampleOrder(40, 0, trial_id).take((step - 1) * BATCH_SIZE, BATCH_SIZE)[part]
    inputs, labels = problem.train.inputs[numbers], problem.train.labels[numbers]
    loss = F.cross_entropy(
        network.train()(inputs).flatten(0, -2), labels.flatten(), ignore_index=PADDING_OF[inputs.dim()]
    )
    named = dict(network.named_parameters())
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    gradients = {
        name: torch.zeros_like(each) if gradient is None else gradient
        for (name, each), gradient in zip(named.items(), found, strict=True)
    }
    weight = int((labels != PADDING).sum()) if inputs.dim() == 2 else len(numbers)
    return loss.detach(), gradients, weight


PADDING_OF = {2: PADDING, 4: -100}
"""What is no label: class 0 is one of pictures."""


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("form", FORMS)
def test_microbatches_are_seen_as_plain_autograd_has_them(make_digits_study, form, size):
    recorded = Recorded()
    program = make_program(make_digits_study, form, size, [recorded])
    parts = [slice(start, min(start + size, BATCH_SIZE)) for start in range(0, BATCH_SIZE, size)]

    for step in range(1, STEPS + 1):
        expected = [[reference(program, row, step, part) for part in parts] for row in range(len(program.trial_ids))]
        program.advance(step)
        seen = recorded.microbatches[-len(parts) :]

        assert len(recorded.microbatches) == step * len(parts)
        for row, of_parts in enumerate(expected):
            whole = sum(weight for _, _, weight in of_parts)
            for each, (loss, gradients, weight) in zip(seen, of_parts, strict=True):
                assert (each["step"], each["weight"][row]) == (step, weight)
                torch.testing.assert_close(each["share"][row], torch.tensor(weight / whole))
                torch.testing.assert_close(each["losses"][row] / each["share"][row], loss, rtol=1e-6, atol=0)
                norm = torch.cat([gradient.flatten() for gradient in gradients.values()]).norm()
                torch.testing.assert_close(each["gradients"][row].norm() / each["share"][row], norm, rtol=1e-6, atol=0)
                for name, gradient in gradients.items():
                    difference = each["by_parameter"][name][row] / each["share"][row] - gradient
                    assert difference.norm() <= 1e-6 * norm


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("form", FORMS)
def test_the_batch_is_the_sum_of_its_microbatches(make_digits_study, form):
    recorded = Recorded()
    program = make_program(make_digits_study, form, 4, [recorded])

    program.advance(1)

    (batch,), parts = recorded.batches, recorded.microbatches
    assert batch["share"].tolist() == [1.0] * len(program.trial_ids)
    for name in ("gradients", "losses", "weight", "share"):
        torch.testing.assert_close(torch.stack([part[name] for part in parts]).sum(0), batch[name])


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("form", FORMS)
def test_training_is_the_same_bits_with_observers(make_digits_study, form, size):
    program = make_program(make_digits_study, form, size, [NormOfMicrobatches(), Recorded()])
    without = trained(make_program(make_digits_study, form, size), 5)

    observed = trained(program, 5)

    assert {name for name in observed if name not in without} == {"observer.0.count", "observer.0.sum"}
    assert equal({name: observed[name] for name in without}, without)
    assert all(np.array_equal(np.signbit(observed[name]), np.signbit(each)) for name, each in without.items())


def test_what_is_reported_is_a_metric_at_the_steps_where_it_is(make_digits_study):
    program = make_program(make_digits_study, "vectorised", 5, [NormOfMicrobatches()])

    rows = []
    for step in (0, 3, 4, 5):
        trained(program, step)
        rows.append(program.evaluate())

    assert [sorted(row.keys() - rows[0].keys()) for row in rows] == [[], [], [], ["train/late"]]
    assert np.isnan(rows[0][NORM]).all()
    assert all(np.isfinite(row[NORM]).all() and row[NORM].dtype == np.float64 for row in rows[1:])
    assert rows[-1]["train/late"].tolist() == [10.0] * 3


def test_a_report_changes_nothing(make_digits_study):
    class Clearing(NormOfMicrobatches):
        def report(self, state):
            norms = super().report(state)
            state["sum"].zero_()
            return norms

    program = make_program(make_digits_study, "packed", 5, [Clearing()])
    trained(program, 3)

    first, second = program.evaluate(), program.evaluate()

    assert first[NORM].tolist() == second[NORM].tolist()


@pytest.mark.parametrize("form", ["packed", "single", "vectorised"])
@pytest.mark.parametrize("stop", range(5))
def test_a_resumed_run_reports_the_same_bits(make_digits_study, form, stop):
    whole = make_program(make_digits_study, form, 4, [NormOfMicrobatches()])
    stopped = trained(make_program(make_digits_study, form, 4, [NormOfMicrobatches()]), stop)

    resumed = make_program(make_digits_study, form, 4, [NormOfMicrobatches()])
    resumed.restore(stopped)

    assert equal(trained(resumed, 5), trained(whole, 5))
    assert resumed.evaluate()[NORM].tolist() == whole.evaluate()[NORM].tolist()


def test_the_others_are_seen_on_where_a_trial_diverges(dataset, make_digits_study):
    points = [Point(trial, {"learning_rate": rate, "momentum": 0.0}) for trial, rate in enumerate((0.1, 1e30, 0.05))]
    study = make_digits_study(batch_size=16)
    trainer = TorchTrainer(dataset, "cpu", microbatch_size=8, observers=[NormOfMicrobatches()])
    pack, alone = trainer.program(study, points), trainer.program(study, points[2:])

    trained(pack, 20)
    trained(alone, 20)

    assert pack.trial_ids.tolist() == [0, 2]
    np.testing.assert_allclose(pack.evaluate()[NORM][1], alone.evaluate()[NORM][0], rtol=1e-5)


def test_a_step_that_is_computed_again_is_seen_once(make_digits_study, monkeypatch):
    expected, program = (
        make_program(make_digits_study, "packed", size, [NormOfMicrobatches()]) for size in (5, BATCH_SIZE)
    )
    monkeypatch.setattr(program_module, "may_run_out", lambda device: True)
    loss_sums, computed = program._loss_sums, []

    def limited(microbatch, *details):
        computed.append(microbatch.part)
        if program._microbatch_size > 5 or len(computed) == 3:  # too large, then once in the middle of a step
            raise torch.OutOfMemoryError("no room")
        return loss_sums(microbatch, *details)

    monkeypatch.setattr(program, "_loss_sums", limited)
    monkeypatch.setattr("batchlab.engine.gang.sharing.halved", lambda size, ghost_size: 5)

    assert equal(trained(program, 1), trained(expected, 1))
    assert len(computed) == 1 + 2 + 2


def test_what_an_observer_draws_at_random_leaves_dropout_alone(make_digits_study, monkeypatch):
    class Dropping(nn.Sequential):
        def __init__(self):
            super().__init__(nn.Flatten(), nn.Linear(64, 8), nn.Dropout(0.5), nn.Linear(8, 10))

    class Drawing(NormOfMicrobatches):
        def see_microbatch(self, state, microbatch):
            torch.rand(100)

    monkeypatch.setitem(FORMS, "dropping", (Single, 1, Dropping, pictures(1, 8, 8)))
    programs = [make_program(make_digits_study, "dropping", 4, [each]) for each in (NormOfMicrobatches(), Drawing())]

    first, second = (trained(program, 3)["parameters"] for program in programs)

    assert np.array_equal(first, second)


# What is refused


def look(make_digits_study, observer):
    program = make_program(make_digits_study, "packed", 5, [observer])
    program.advance(1)
    return program.evaluate()


def one(**methods):
    """Return an observer of one metric, with some methods of its own."""
    return type("Mine", (Observer,), {"metrics": ("train/x",), "report": lambda self, state: {}} | methods)()


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"see_microbatch": lambda self, state, seen: seen.gradients.mul_(2)}, "has changed the gradients"),
        ({"see_batch": lambda self, state, seen: seen.by_parameter["dense_0.bias"].zero_()}, "changed the gradients"),
        ({"start": lambda self, parameters: [1]}, "start returned list: give a dict"),
        ({"start": lambda self, parameters: {"sum": 0.0}}, "sum is float: give a tensor whose first axis"),
        ({"start": lambda self, parameters: {"sum": torch.zeros(7)}}, r"sum is shape \(7,\)"),
        ({"see_batch": lambda self, state, seen: state.update(new=seen.losses)}, "new of its state is no longer"),
        ({"report": lambda self, state: None}, "report returned NoneType"),
        ({"report": lambda self, state: {"train/y": 1}}, 'Unknown metric "train/y".*Known: train/x'),
        ({"report": lambda self, state: {"train/x": 0.5}}, "train/x is float: give a tensor of 3, one number for"),
        ({"report": lambda self, state: {"train/x": torch.zeros(3, 2)}}, r"train/x is of shape \(3, 2\)"),
    ],
)
def test_what_breaks_the_contract_is_told_in_one_sentence(make_digits_study, methods, message):
    with pytest.raises(TrainerError, match=f"Mine.*{message}"):
        look(make_digits_study, one(**methods))


def test_a_state_that_becomes_one_number_is_told_of(make_digits_study):
    forgetful = one(
        start=lambda self, parameters: {"norm": torch.zeros(len(parameters))},
        see_batch=lambda self, state, seen: state.update(norm=seen.gradients.norm()),
    )

    with pytest.raises(TrainerError, match="norm of its state is no longer what `start` returned"):
        look(make_digits_study, forgetful)


@pytest.mark.parametrize(
    ("observer", "message"),
    [
        (NormOfMicrobatches, r"give an object, NormOfMicrobatches\(\)"),
        (lambda state: None, "is no observer: extend batchlab.Observer"),
        (type("Mine", (Observer,), {"report": lambda self, state: {}})(), "Mine.metrics is None: name what"),
        (type("Mine", (Observer,), {"metrics": (), "report": None})(), r"Mine.metrics is \(\)"),
        (type("Mine", (Observer,), {"metrics": ("norm",), "report": None})(), "norm is no name .* call it train/NAME"),
        (type("Mine", (Observer,), {"metrics": ("train/loss",), "report": None})(), "train/loss is measured already"),
    ],
)
def test_what_is_no_observer_is_refused_before_anything_is_trained(observer, message):
    with pytest.raises(InputError, match=message):
        observed_metrics(["val/loss", "train/loss"], [observer])


def test_two_observers_report_different_metrics():
    with pytest.raises(InputError, match="measured already"):
        observed_metrics([], [NormOfMicrobatches(), NormOfMicrobatches()])
