"""A batch size that a schedule sets: networks against a plain loop, the quadratic model against its recursion."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from batchlab.core.clock import Clock
from batchlab.core.seeds import Stream, generator
from batchlab.core.space import SearchSpace
from batchlab.core.sweep import Sweep
from batchlab.core.workload import Named
from batchlab.engine import program as program_module
from batchlab.engine.base import Point, wanted_pack_size
from batchlab.engine.objectives import OBJECTIVES
from batchlab.engine.order import ExampleOrder
from batchlab.engine.problem import Problem
from batchlab.engine.program import TorchProgram
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.engine.source import Split
from batchlab.errors import SpecError
from batchlab.models.registry import build_model
from batchlab.models.simple_cnn import SimpleCnn
from tests.states import equal, trained

GROWS = {"name": "staircase", "of": "batch_size"}
STAIRS = {"stage_factor": 2.0, "stage_length": 100.0, "stage_limit": 100.0}
POINT = Point(3, {"learning_rate": 0.05, "momentum": 0.9, **STAIRS})
SIZES = [16] * 7 + [32] * 3 + [64] * 2 + [100] * 8
"""Of the first 20 updates: doubled by the first update after 100, 200 and 300 examples; these are 112, 208 and 336."""


def split(examples):
    return Split(torch.from_numpy(examples.inputs), torch.from_numpy(examples.labels))


@pytest.fixture
def make_program(dataset, make_digits_study):
    def make(make_network=None, point=POINT, microbatch_size="auto", schedule=GROWS, **limits):
        study = make_digits_study(schedule=schedule).model_copy(update=limits)
        network = make_network or (lambda: build_model(study.workload.model, dataset.input_shape, dataset.num_classes))
        objective, cpu = OBJECTIVES["classification"], torch.device("cpu")
        problem = Problem(network, objective, 10, split(dataset.train), {"val": split(dataset.val)}, cpu)
        return TorchProgram(problem, study, [point], microbatch_size=microbatch_size)

    return make


def plain_parameters(dataset, sizes):
    """Return the parameters after updates of these batch sizes, by torch.nn and torch.optim."""
    model = build_model(Named(name="fc_128"), dataset.input_shape, dataset.num_classes)
    model.start(generator(0, Stream.INIT, POINT.trial_id))
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    for ours, theirs in zip(model.parameters(), net.parameters(), strict=True):
        theirs.data.copy_(ours.data)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    order, seen = ExampleOrder(len(dataset.train), 0, POINT.trial_id), 0
    for size in sizes:
        batch = split(dataset.train.at(order.take(seen, size)))
        optimizer.zero_grad()
        F.cross_entropy(net(batch.inputs), batch.labels).backward()
        optimizer.step()
        seen += size
    return torch.nn.utils.parameters_to_vector(net.parameters()).detach().numpy()


class Own(nn.Module):
    """BatchNorm and dropout, of any batch size."""

    def __init__(self):
        super().__init__()
        self.dense_0, self.norm, self.dropout = nn.Linear(64, 20), nn.BatchNorm1d(20), nn.Dropout(0.3)
        self.dense_1 = nn.Linear(20, 10)

    def forward(self, images):
        return self.dense_1(self.dropout(self.norm(self.dense_0(images.flatten(1))).relu()))


def small_cnn():
    return SimpleCnn((2, 3), 8, (1, 8, 8), 10, dropout=0.4)


def test_a_network_trains_as_a_plain_loop_over_growing_batches(dataset, make_program):
    program = make_program()

    state = trained(program, 20)

    assert program.examples == int(state["examples"]) == sum(SIZES)
    np.testing.assert_allclose(state["parameters"][0], plain_parameters(dataset, SIZES), rtol=1e-4, atol=1e-6)


def test_chunks_do_not_show(make_program, monkeypatch):
    whole = trained(make_program(), 20)
    monkeypatch.setattr(program_module, "CHUNK_INDICES", 150)
    program, ends = make_program(), []

    while program.step < 20:
        program.advance(20)
        ends.append((program.step, program.examples))

    assert equal(whole, program.state())
    chunks = np.diff([0, *(examples for _, examples in ends)])
    assert chunks.max() <= 150 and len(ends) > 5


@pytest.mark.parametrize("network", [None, Own, small_cnn], ids=["fc_128", "own module", "dropout"])
def test_it_goes_on_from_any_state_to_the_bit(make_program, network):
    whole = trained(make_program(network), 20)

    for stop in (1, 7, 8, 11, 19):
        resumed = make_program(network)
        resumed.restore(trained(make_program(network), stop))
        assert equal(whole, trained(resumed, 20))


def test_microbatches_add_up_to_the_batch(make_program):
    whole, cut = (trained(make_program(microbatch_size=size), 20) for size in (10_000, 24))

    assert not equal(whole, cut)
    np.testing.assert_allclose(cut["parameters"], whole["parameters"], rtol=1e-4, atol=1e-6)


def test_a_staircase_without_stairs_is_the_constant_batch_size(make_program):
    flat = make_program(point=Point(3, {**POINT.metaparameters, "stage_factor": 1.0}))
    plain = make_program(schedule="constant", point=Point(3, {"learning_rate": 0.05, "momentum": 0.9}))

    assert equal(trained(flat, 20), trained(plain, 20))


def test_other_metaparameters_may_be_scheduled_in_the_same_way(make_program):
    stairs = {"stage_factor": 0.5, "stage_length": 5.0, "stage_limit": 0.01}
    schedule = {"name": "staircase", "of": "learning_rate", "unit": "steps"}
    program = make_program(schedule=schedule, point=Point(3, {"learning_rate": 0.05, "momentum": 0.9, **stairs}))

    ahead = program._timetable.ahead(Clock(), 20, 10**6)

    rates = [ahead.now(index)["learning_rate"].item() for index in range(20)]
    np.testing.assert_allclose(rates, [0.05] * 5 + [0.025] * 5 + [0.0125] * 5 + [0.01] * 5, rtol=1e-6)
    assert ahead.batch_sizes == [16] * 20


@pytest.mark.parametrize("of", ["momentum", "batch_size"])
def test_anything_may_change_linearly(make_program, of):
    numbers = {f"end_{of}_factor": 0.5, f"{of}_decay_steps": 4.0}
    point = Point(3, {"learning_rate": 0.05, "momentum": 0.8, **numbers})
    program = make_program(schedule={"name": "linear_decay", "of": of}, point=point)

    ahead = program._timetable.ahead(Clock(), 6, 10**6)

    momenta = [ahead.now(index)["momentum"].item() for index in range(6)]
    falling = [1, 0.875, 0.75, 0.625, 0.5, 0.5]
    np.testing.assert_allclose(momenta, [0.8 * (each if of == "momentum" else 1) for each in falling], rtol=1e-6)
    assert ahead.batch_sizes == [16 * (each if of == "batch_size" else 1) for each in falling]


def test_a_limit_of_examples_ends_a_trial_by_its_clock(make_program):
    program = make_program(max_examples=400)
    while not program.is_spent:
        program.advance(200)

    assert (program.step, program.examples) == (12, sum(SIZES[:12]))
    assert program.examples + SIZES[12] > 400


def test_trials_train_one_by_one(trainer, make_digits_study):
    study = make_digits_study(schedule=GROWS)

    assert wanted_pack_size(trainer, study) == 1
    with pytest.raises(SpecError, match="2 trials whose batch size is scheduled cannot train together"):
        trainer.program(study, [POINT, Point(4, POINT.metaparameters)])


def test_a_state_from_before_examples_were_counted_is_of_one_batch_size(make_program):
    plain = Point(3, {"learning_rate": 0.05, "momentum": 0.9})
    old = trained(make_program(schedule="constant", point=plain), 7)
    del old["examples"]
    resumed, scheduled = make_program(schedule="constant", point=plain), make_program()

    resumed.restore(old)

    assert resumed.examples == 7 * 16
    with pytest.raises(ValueError, match="it lacks"):
        scheduled.restore(old)


# The noisy quadratic model


def make_quadratic(values=(), schedule=GROWS, optimizer="sgd", **limits):
    data = {
        "name": "test",
        "workload": {"dataset": "nqm", "model": "quadratic", "optimizer": optimizer, "schedule": schedule},
        "sweep": {"batch_sizes": [4], "trials": 1, "goal": "val/risk < 0.1", **(limits or {"max_steps": 10_000})},
        "search_space": {name: {"values": [0.1]} for name in values},
    }
    return Sweep.parse(data, "test").study(4)


def plain_risks(sizes, rate, momentum=None):
    """Return the risks before each update and after the last, by the recursion of the moments E (theta, u)(theta, u)^T.

    Zhang et al. 2019: u <- b u + h theta + e, theta <- theta - a u, with e of variance h / B.
    """
    h, b = 1 / np.arange(1, 101), 0.0 if momentum is None else momentum
    tt, tu, uu = np.ones(100), np.zeros(100), np.zeros(100)
    risks = []
    for size in [*sizes, 1]:
        risks.append(float(np.sum(h * tt) / 2))
        new_uu = b**2 * uu + 2 * b * h * tu + h**2 * tt + h / size
        cross = b * tu + h * tt  # E theta u', with the theta before the update
        tt, tu, uu = tt - 2 * rate * cross + rate**2 * new_uu, cross - rate * new_uu, new_uu
    return risks


NQM_STAIRS = {"stage_factor": 3.0, "stage_length": 200.0, "stage_limit": 700.0}


@pytest.mark.parametrize(("optimizer", "momentum"), [("sgd", None), ("momentum", 0.8)])
def test_the_quadratic_model_is_its_recursion_over_growing_batches(optimizer, momentum):
    values = {"learning_rate": 0.2, **NQM_STAIRS, **({} if momentum is None else {"momentum": momentum})}
    study, sizes, seen = make_quadratic(values, optimizer=optimizer), [], 0
    for _ in range(400):
        sizes.append(min(700, 4 * 3 ** (seen // 200)))
        seen += sizes[-1]
    expected = plain_risks(sizes, 0.2, momentum)
    program = QuadraticTrainer().program(study, [Point(0, values)])

    for step in (0, 1, 49, 50, 51, 66, 67, 68, 300, 400):
        while program.step < step:
            program.advance(step)
        assert program.evaluate()["val/risk"].item() == pytest.approx(expected[step], rel=1e-11)
        assert program.examples == sum(sizes[:step])
    assert [size for size, _ in groupby(sizes)] == [4, 12, 36, 108, 324, 700]


def test_the_quadratic_model_jumps_from_change_to_change(monkeypatch):
    program = make_quadratic_program({"learning_rate": 0.2, **NQM_STAIRS})
    monkeypatch.setattr(program, "_walk", lambda rows, *_: assert_none(rows))
    ends = []

    while program.step < 400:
        program.advance(400)
        ends.append(program.step)

    assert ends == [50, 67, 73, 75, 76, 400]


def assert_none(rows):
    assert len(rows) == 0


def make_quadratic_program(values, state=None, **workload):
    return QuadraticTrainer().program(make_quadratic(values, **workload), [Point(0, values)], state)


def test_a_resumed_quadratic_model_gives_the_same_bits():
    values = {"learning_rate": 0.2, **NQM_STAIRS}
    whole = trained(make_quadratic_program(values), 80)

    for stop in (50, 67, 75, 76):  # where it changes: in between a jump is cut in two, and rounds otherwise
        state = trained(make_quadratic_program(values), stop)
        assert equal(whole, trained(make_quadratic_program(values, state), 80))


@pytest.mark.parametrize("of", ["learning_rate", "momentum"])
def test_the_quadratic_model_follows_any_schedule(of):
    """Both were ignored by a model that asked for the learning rate of linear decay alone."""
    constant = {"learning_rate": 0.2, "momentum": 0.8}
    stairs = {"stage_factor": 0.5, "stage_length": 10.0, "stage_limit": 0.01}
    schedule = {"name": "staircase", "of": of, "unit": "steps"}
    program = make_quadratic_program({**constant, **stairs}, schedule=schedule, optimizer="momentum")
    start, half = (
        make_quadratic_program(values, schedule="constant", optimizer="momentum")
        for values in (constant, {**constant, of: constant[of] / 2})
    )

    state = trained(program, 20)
    half.restore(trained(start, 10))

    np.testing.assert_allclose(state["moments"], trained(half, 20)["moments"], rtol=1e-12)


# What cannot be


@pytest.mark.parametrize(
    ("schedule", "told"),
    [
        ({**GROWS, **STAIRS, "stage_limit": 2000}, r"would be 2000, more than the training set has \(1,297 examples\)"),
        ({**GROWS, **STAIRS, "stage_factor": 0.1, "stage_limit": 0.1}, "would be 0, less than 1"),
        ({**GROWS, **STAIRS, "of": "batchsize"}, "workload.schedule.of: Unknown metaparameter .batchsize"),
        ({"name": "linear_decay", "of": "momentun"}, "workload.schedule.of: Unknown metaparameter .momentun"),
        (
            {**GROWS, **STAIRS, "of": 3},
            "of = 3 of schedule staircase must be the name of a metaparameter, or batch_size",
        ),
        (
            {**GROWS, **STAIRS, "unit": "weeks"},
            "schedule staircase: Unknown unit .weeks.. Known: epochs, examples, steps",
        ),
        ({**GROWS, **STAIRS, "stage_length": 0}, "stage_length = 0 must be above 0"),
        (
            {"name": "linear_decay", "of": "momentum", "end_momentum_factor": 3.0, "momentum_decay_steps": 9.0},
            "workload.schedule leads to momentum = .*, which must be at least 0 and below 1",
        ),
        ({**GROWS, "stage_factor": 2}, "metaparameter `stage_length` of .* has no value"),
        ({**GROWS, **STAIRS, "stage_colour": 2}, "stage_colour"),
    ],
)
def test_schedules_that_cannot_be_are_told_in_one_line(trainer, make_digits_study, schedule, told):
    with pytest.raises(SpecError, match=told) as caught:
        trainer.check(make_digits_study(schedule=schedule))

    assert "\n" not in str(caught.value)


def test_a_range_is_asked_at_its_ends(trainer, make_digits_study):
    study = make_digits_study(schedule={**GROWS, "stage_factor": 2, "stage_length": 100})
    searched = {**study.search_space.root, "stage_limit": {"min": 64, "max": 4096, "scale": "log"}}
    space = SearchSpace.model_validate(searched)

    with pytest.raises(SpecError, match="would be 4096, more than the training set has"):
        trainer.check(study.model_copy(update={"search_space": space}))


@pytest.mark.parametrize(
    ("unit", "limits", "beyond"),
    [("steps", {"max_steps": 5120}, {"max_steps": 5121}), ("examples", {"max_examples": 5120}, {"max_examples": 5121})],
)
def test_what_comes_after_the_last_update_is_not_asked_for(trainer, make_digits_study, unit, limits, beyond):
    stairs = {"stage_factor": 2, "stage_length": 5120, "stage_limit": 2048}
    study = make_digits_study(schedule={**GROWS, **stairs, "unit": unit}).model_copy(update={"batch_size": 1024})

    trainer.check(study.model_copy(update=limits))
    with pytest.raises(SpecError, match="would be 2048, more than the training set has"):
        trainer.check(study.model_copy(update=beyond))


def test_packs_and_microbatches_fit_the_schedule(trainer, make_digits_study):
    study = make_digits_study(schedule={**GROWS, **STAIRS})

    with pytest.raises(SpecError, match="engine.pack_size = 4: trials whose batch size is scheduled train one by one"):
        trainer.check(study.model_copy(update={"engine": {"pack_size": 4}}))


def test_the_quadratic_model_has_no_epochs():
    with pytest.raises(SpecError, match="there is no training set here"):
        QuadraticTrainer().check(make_quadratic(["learning_rate"], {**GROWS, **STAIRS, "unit": "epochs"}))
