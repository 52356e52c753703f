"""The program for K trials: the same as K programs, as a slow loop, as itself after a stop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from batchlab.core.seeds import Stream, generator
from batchlab.engine import program as program_module
from batchlab.engine.base import LOSS_BOUND, Point
from batchlab.engine.objectives import OBJECTIVES
from batchlab.engine.order import ExampleOrder
from batchlab.engine.problem import Problem
from batchlab.engine.program import TorchProgram
from batchlab.engine.source import Split
from batchlab.engine.torch_trainer import TorchTrainer
from batchlab.models.registry import build_model
from batchlab.models.simple_cnn import SimpleCnn

HARMLESS = {"learning_rate": 0.05, "momentum": 0.9}


def make_points(num_trials):
    """Return trials whose learning rate and momentum both differ, none of them wild."""
    rates, momenta = np.geomspace(0.01, 0.3, num_trials), np.linspace(0.0, 0.9, num_trials)
    return [
        Point(trial_id, {"learning_rate": float(rate), "momentum": float(momentum)})
        for trial_id, (rate, momentum) in enumerate(zip(rates, momenta, strict=True))
    ]


def advance_to(program, target):
    while program.step < target and len(program.trial_ids):
        program.advance(target)


def curve(program, steps):
    """Return the metrics at these steps by name, each [num_steps, K]."""
    rows = []
    for step in steps:
        advance_to(program, step)
        rows.append(program.evaluate())
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def parameters(program):
    return program.state()["parameters"]


def tensors(examples):
    return Split(torch.from_numpy(examples.inputs), torch.from_numpy(examples.labels))


def program_of(make_network, dataset, study, points, microbatch_size=10_000):
    """Return a program of a network that has no name."""
    problem = Problem(
        make_network=make_network,
        objective=OBJECTIVES[dataset.task],
        num_classes=dataset.num_classes,
        train=tensors(dataset.train),
        evaluated={"val": tensors(dataset.val)},
        device=torch.device("cpu"),
    )
    return TorchProgram(problem, study, points, microbatch_size=microbatch_size)


class ObviousTrial:
    """One trial in the way of any tutorial: torch.nn, torch.optim, one step after the other."""

    def __init__(self, dataset, study, point):
        self.dataset, self.study, self.step = dataset, study, 0
        self.net = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
        )
        model = build_model(study.workload.model, dataset.input_shape, dataset.num_classes)
        model.start(generator(study.seed, Stream.INIT, point.trial_id))
        for ours, theirs in zip(model.parameters(), self.net.parameters(), strict=True):
            theirs.data.copy_(ours.data)
        self.metaparameters = metaparameters = point.metaparameters
        self.optimizer = torch.optim.SGD(
            self.net.parameters(),
            lr=metaparameters["learning_rate"],
            momentum=metaparameters["momentum"],
            nesterov=metaparameters["momentum"] > 0,
        )
        self.order = ExampleOrder(len(dataset.train), study.seed, point.trial_id)

    def train_step(self):
        """Make one update; return the loss before it."""
        self._schedule()
        rows = self.order.take(self.step * self.study.batch_size, self.study.batch_size)
        batch = tensors(self.dataset.train.at(rows))
        loss = F.cross_entropy(self.net(batch.inputs), batch.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def _schedule(self):
        if "learning_rate_decay_steps" in self.metaparameters:
            done = min(self.step / self.metaparameters["learning_rate_decay_steps"], 1.0)
            factor = 1 - (1 - self.metaparameters["end_learning_rate_factor"]) * done
            self.optimizer.param_groups[0]["lr"] = self.metaparameters["learning_rate"] * factor

    @torch.no_grad()
    def evaluate(self):
        val = tensors(self.dataset.val)
        logits = self.net(val.inputs)
        return F.cross_entropy(logits, val.labels).item(), (logits.argmax(1) != val.labels).float().mean().item()

    def parameters(self):
        return torch.nn.utils.parameters_to_vector(self.net.parameters()).detach().numpy()


# Packs


def test_32_trials_together_train_as_each_does_alone(trainer, make_digits_study):
    study, points, steps = make_digits_study(), make_points(32), range(0, 201, 20)
    together = trainer.program(study, points)
    curves = curve(together, steps)["val/cross_entropy_error"]

    for trial in (0, 10, 21, 31):
        alone = trainer.program(study, [points[trial]])
        expected = curve(alone, steps)["val/cross_entropy_error"][:, 0]

        np.testing.assert_allclose(curves[:, trial], expected, rtol=1e-4)
        error = np.linalg.norm(parameters(together)[trial] - parameters(alone)[0])
        assert error < 1e-4 * np.linalg.norm(parameters(alone)[0])


@pytest.mark.parametrize("batch_size", [1, 16])
def test_the_bits_of_a_trial_do_not_depend_on_its_row(trainer, make_digits_study, batch_size):
    """Nor on how many train beside it, for a fully connected network: a study that grows is computed in other packs."""
    study, points = make_digits_study(batch_size=batch_size), make_points(8)
    together = trainer.program(study, points)
    apart = trainer.program(study, [points[index] for index in (2, 3, 7)])
    for program in (together, apart):
        advance_to(program, 40)

    assert np.array_equal(parameters(together)[[2, 3, 7]], parameters(apart))


def test_the_same_seed_gives_the_same_bits(trainer, make_digits_study):
    study, points, steps = make_digits_study(), make_points(5), range(0, 101, 20)
    first, second = trainer.program(study, points), trainer.program(study, points)
    curves, curves_again = curve(first, steps), curve(second, steps)

    assert list(curves) == list(curves_again)
    for name in curves:
        assert np.array_equal(curves[name], curves_again[name])
    assert np.array_equal(parameters(first), parameters(second))


def test_another_seed_gives_other_numbers(trainer, make_digits_study):
    programs = [trainer.program(make_digits_study(seed=seed), make_points(2)) for seed in (0, 1)]

    first, second = (curve(program, [0, 20])["val/cross_entropy_error"] for program in programs)

    assert (first != second).all()


@pytest.mark.parametrize("batch_size", [1, 16, 1297])
def test_a_program_equals_the_obvious_loop(dataset, trainer, make_digits_study, batch_size):
    """50 updates; the batch of 1,297 is the whole training set, one epoch for each update."""
    study, points = make_digits_study(batch_size=batch_size), make_points(3)
    program = trainer.program(study, points)
    curves = curve(program, [0, 10, 50])

    for trial, point in enumerate(points):
        obvious, expected = ObviousTrial(dataset, study, point), []
        for step in (0, 10, 50):
            while obvious.step < step:
                obvious.train_step()
            expected.append(obvious.evaluate())

        np.testing.assert_allclose(curves["val/cross_entropy_error"][:, trial], [row[0] for row in expected], rtol=1e-4)
        np.testing.assert_allclose(
            curves["val/classification_error"][:, trial], [row[1] for row in expected], rtol=1e-5
        )
        error = np.linalg.norm(parameters(program)[trial] - obvious.parameters())
        assert error < 1e-4 * np.linalg.norm(obvious.parameters())


def test_the_schedule_sets_the_rate_of_every_update(trainer, make_digits_study):
    """A decay over one step to a tenth: the first update at the full rate, the others at a tenth of it."""
    schedule = {"name": "linear_decay", "end_learning_rate_factor": 0.1, "learning_rate_decay_steps": 1}
    decaying = make_digits_study(schedule=schedule, optimizer="sgd")
    constant = make_digits_study(optimizer="sgd")
    decay = {"end_learning_rate_factor": 0.1, "learning_rate_decay_steps": 1.0}
    program = trainer.program(decaying, [Point(0, {"learning_rate": 0.2, **decay})])
    fast, slow = (trainer.program(constant, [Point(0, {"learning_rate": rate})]) for rate in (0.2, 0.02))

    program.advance(1)
    fast.advance(1)
    assert np.array_equal(parameters(program), parameters(fast))

    slow.restore(fast.state())
    advance_to(slow, 10)
    advance_to(program, 10)
    np.testing.assert_allclose(parameters(program), parameters(slow), rtol=1e-6, atol=1e-7)


def test_bfloat16_trains_close_to_float32(dataset, trainer, make_digits_study):
    study, points, steps = make_digits_study(), make_points(3), [0, 50]
    exact = curve(trainer.program(study, points), steps)["val/cross_entropy_error"]
    rough = TorchTrainer(dataset, device="cpu", precision="bfloat16").program(study, points)
    rounded = curve(rough, steps)["val/cross_entropy_error"]

    assert parameters(rough).dtype == np.float32
    assert not np.array_equal(exact, rounded)
    np.testing.assert_allclose(rounded, exact, rtol=0.05)


def test_advance_returns_early_at_steps_that_depend_only_on_where_it_started(trainer, make_digits_study, monkeypatch):
    """A program that is restored in the middle must cut its chunks as the one that never stopped did."""
    monkeypatch.setattr(program_module, "CHUNK_INDICES", 16 * 2 * 7)
    study, points, seen = make_digits_study(), make_points(2), []
    program = trainer.program(study, points)

    while program.step < 20:
        program.advance(20)
        seen.append(program.step)

    assert seen == [7, 14, 20]


def test_a_chunk_is_never_shorter_than_one_update(trainer, make_digits_study, monkeypatch):
    monkeypatch.setattr(program_module, "CHUNK_FLOPS", 1.0)
    program = trainer.program(make_digits_study(), make_points(2))

    program.advance(100)

    assert program.step == 1


# Divergence


def wild(trial_id, learning_rate):
    return Point(trial_id, {"learning_rate": learning_rate, "momentum": 0.9})


def first_bad_update(obvious):
    """Return the first update whose loss is not a number below the bound, looking at every one."""
    while obvious.train_step() <= LOSS_BOUND:
        assert obvious.step < 200, "this trial is not wild enough for the test"
    return obvious.step


@pytest.mark.parametrize(("learning_rate", "expected"), [(100.0, 3), (1e4, 2), (1e8, 2)])
def test_a_wild_trial_leaves_at_the_first_update_whose_loss_is_too_large(
    dataset, trainer, make_digits_study, learning_rate, expected
):
    study, points = make_digits_study(), [*make_points(2), wild(2, learning_rate)]
    assert first_bad_update(ObviousTrial(dataset, study, points[2])) == expected

    program = trainer.program(study, points)
    advance_to(program, 200)

    assert program.diverged == {2: expected}
    assert program.trial_ids.tolist() == [0, 1]
    assert parameters(program).shape[0] == 2
    assert program.evaluate()["val/cross_entropy_error"].shape == (2,)


@pytest.mark.parametrize("chunk_steps", [1, 7, 200])
def test_the_step_of_divergence_does_not_depend_on_how_often_one_looks(
    dataset, trainer, make_digits_study, monkeypatch, chunk_steps
):
    """Two trials whose learning rate rises until they diverge: in the middle of a chunk, and not together."""
    monkeypatch.setattr(program_module, "CHUNK_INDICES", 16 * 3 * chunk_steps)
    rise = {"learning_rate_decay_steps": 100.0, "momentum": 0.9}
    study = make_digits_study(schedule={"name": "linear_decay"})
    points = [
        Point(trial_id, {"learning_rate": 0.01, "end_learning_rate_factor": factor, **rise})
        for trial_id, factor in enumerate((2.0, 5e4, 1e5))
    ]
    expected = {trial: first_bad_update(ObviousTrial(dataset, study, points[trial])) for trial in (1, 2)}
    assert expected == {1: 9, 2: 6}

    program = trainer.program(study, points)
    advance_to(program, 200)

    assert program.diverged == expected


def test_a_finite_loss_above_the_bound_is_divergence(dataset, trainer, make_digits_study):
    study, point = make_digits_study(), wild(0, 1e4)
    obvious = ObviousTrial(dataset, study, point)
    losses = [obvious.train_step(), obvious.train_step()]
    assert losses[0] < LOSS_BOUND < losses[1] < np.inf

    program = trainer.program(study, [point])
    advance_to(program, 200)

    assert program.diverged == {0: 2}
    assert len(program.trial_ids) == 0


def test_a_large_loss_below_the_bound_is_not_divergence(dataset, trainer, make_digits_study):
    study, point = make_digits_study(), wild(0, 1e3)
    obvious = ObviousTrial(dataset, study, point)
    losses = [obvious.train_step(), obvious.train_step()]
    assert 1e3 < losses[1] < LOSS_BOUND

    program = trainer.program(study, [point])
    advance_to(program, 2)

    assert program.diverged == {}


def test_infinite_parameters_are_divergence_before_they_are_evaluated(trainer, make_digits_study):
    """An update may leave the numbers while the loss before it was sound."""
    program = trainer.program(make_digits_study(), [*make_points(2), wild(2, 3e38)])

    program.advance(1)

    assert program.diverged == {2: 1}
    assert np.isfinite(program.evaluate()["val/cross_entropy_error"]).all()


def test_the_others_do_not_notice_who_diverges_beside_them(trainer, make_digits_study):
    """The same pack size, once with one wild trial and once with another: the sound ones have the same bits."""
    study, sound, steps = make_digits_study(), make_points(3), [0, 20, 60]
    programs = [trainer.program(study, [*sound, wild(3, rate)]) for rate in (1e4, 1e9)]
    first, second = (curve(program, steps[1:]) for program in programs)

    assert [list(program.diverged) for program in programs] == [[3], [3]]
    assert np.array_equal(parameters(programs[0]), parameters(programs[1]))
    for name in first:
        assert np.array_equal(first[name], second[name])


def test_trials_after_one_that_left_keep_their_own_rows(trainer, make_digits_study):
    """The first and a middle trial leave; the others must go on with their own order, rate and velocity."""
    study, points = make_digits_study(), make_points(4)
    program = trainer.program(study, [wild(0, 1e9), points[1], wild(2, 1e9), points[3]])
    advance_to(program, 5)
    assert program.trial_ids.tolist() == [1, 3]
    advance_to(program, 60)

    for row, trial in enumerate((1, 3)):
        alone = trainer.program(study, [points[trial]])
        advance_to(alone, 60)
        np.testing.assert_allclose(parameters(program)[row], parameters(alone)[0], rtol=1e-3, atol=1e-5)


# Stop and go


@pytest.mark.parametrize("stop", [1, 2, 7, 20, 33])
def test_a_restored_program_goes_on_with_the_same_bits(trainer, make_digits_study, stop):
    """Stopped at a step that is evaluated or is not, before and after one of the trials diverges."""
    study, points = make_digits_study(), [*make_points(3), wild(3, 1e9), wild(4, 100.0)]
    straight = trainer.program(study, points)
    advance_to(straight, stop)
    resumed = trainer.program(study, points, straight.state())
    assert resumed.step == stop
    assert resumed.trial_ids.tolist() == straight.trial_ids.tolist()
    assert resumed.diverged == straight.diverged

    expected, curves = curve(straight, [40, 60]), curve(resumed, [40, 60])

    assert set(resumed.diverged) == {3, 4}
    assert resumed.diverged == straight.diverged
    for name in expected:
        assert np.array_equal(curves[name], expected[name])
    for name, array in straight.state().items():
        assert np.array_equal(resumed.state()[name], array)


def test_a_state_does_not_change_while_the_program_goes_on(trainer, make_digits_study):
    program = trainer.program(make_digits_study(), make_points(2))
    program.advance(1)
    saved = program.state()
    before = {name: array.copy() for name, array in saved.items()}

    advance_to(program, 5)

    for name, array in saved.items():
        assert np.array_equal(array, before[name])


def test_a_state_in_which_all_have_diverged_can_be_restored(trainer, make_digits_study):
    study, points = make_digits_study(), [wild(0, 1e9), wild(1, 1e9)]
    program = trainer.program(study, points)
    advance_to(program, 20)

    restored = trainer.program(study, points, program.state())

    assert len(restored.trial_ids) == 0
    assert restored.diverged == program.diverged == {0: 2, 1: 2}


# Dropout


class Spy(SimpleCnn):
    """A small CNN that keeps the masks it was given."""

    def __init__(self, dropout):
        super().__init__((2, 3), 8, (1, 8, 8), 10, dropout)
        self.seen = []

    def packed_logits(self, parameters, inputs, masks=None):
        self.seen.append(masks)
        return super().packed_logits(parameters, inputs, masks)


def spied(dropout, dataset, study, points):
    """Return a program, and the network that sees what it is given from now on."""
    made = []

    def make():
        made.append(Spy(dropout))
        return made[-1]

    program = program_of(make, dataset, study, points)
    made[0].seen.clear()
    return program, made[0]


def masks_of(dataset, study, trial_ids, num_steps=4):
    """Return the masks [num_steps, K, B, hidden] that these trials trained with."""
    program, network = spied(0.5, dataset, study, [Point(trial_id, HARMLESS) for trial_id in trial_ids])
    advance_to(program, num_steps)
    return torch.stack(network.seen)


def test_dropout_depends_on_trial_and_step_alone(dataset, make_digits_study):
    study = make_digits_study(model={"name": "simple_cnn_narrow", "dropout": 0.5})
    together, alone = masks_of(dataset, study, [3, 5, 8]), masks_of(dataset, study, [5])

    assert torch.equal(together[:, 1], alone[:, 0])
    assert len({tuple(mask.flatten().tolist()) for mask in together.flatten(0, 1)}) == 4 * 3


def test_dropout_of_another_seed_differs(dataset, make_digits_study):
    first, second = (masks_of(dataset, make_digits_study(seed=seed), [5]) for seed in (0, 1))

    assert not torch.equal(first, second)


def test_dropout_goes_on_after_a_restore(dataset, make_digits_study):
    study, points = make_digits_study(), [Point(5, HARMLESS)]
    program, _ = spied(0.5, dataset, study, points)
    advance_to(program, 2)
    resumed, network = spied(0.5, dataset, study, points)
    resumed.restore(program.state())

    advance_to(resumed, 4)

    assert torch.equal(torch.stack(network.seen), masks_of(dataset, study, [5])[2:])


def test_dropout_is_off_in_evaluation(dataset, make_digits_study):
    program, network = spied(0.5, dataset, make_digits_study(), [Point(5, HARMLESS)])

    first, second = program.evaluate(), program.evaluate()

    assert network.seen == [None, None]
    assert np.array_equal(first["val/cross_entropy_error"], second["val/cross_entropy_error"])


def test_a_model_without_dropout_draws_no_masks(dataset, make_digits_study):
    program, network = spied(0.0, dataset, make_digits_study(), [Point(5, HARMLESS)])

    program.advance(1)

    assert network.seen == [None]


def test_a_cnn_with_dropout_trains(trainer, make_digits_study):
    study = make_digits_study(model={"name": "simple_cnn_narrow", "dropout": 0.25})
    errors = curve(trainer.program(study, [Point(0, HARMLESS), Point(1, HARMLESS)]), [0, 40])["val/cross_entropy_error"]

    assert (errors[1] < 0.6 * errors[0]).all()
