"""A study of one's own network, from Python."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from batchlab.core.clock import Clock
from batchlab.engine.base import Point, UpTo
from batchlab.engine.observer import Observer
from batchlab.errors import InputError, SpecError, TrainerError
from batchlab.models.ghost_norm import GhostNorm
from batchlab.optim import registry
from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab
from tests.own.conftest import examples

POINT = {"learning_rate": 0.05, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0}


def program_of(own, num_trials=1, batch_size=4):
    return own.trainer.program(own.spec.study(batch_size), [Point(trial, POINT) for trial in range(num_trials)])


def trained(program, target=20):
    while program.step < target:
        program.advance(target)
    return program


def test_its_spec_is_data_with_its_own_names(make_own):
    sweep = make_own(max_steps=...).spec

    assert sweep.workload.name == "own/Net/adamw"
    assert sweep.search.max_examples == 100 * 200
    assert sweep.search_space["learning_rate"].scale == "log"
    assert sweep.workload.optimizer.options == {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0}


def test_it_trains_as_a_plain_loop_does(make_own):
    own = make_own(optimizer="sgd", search_space={"learning_rate": [0.1]})
    program = own.trainer.program(own.spec.study(4), [Point(0, {"learning_rate": 0.1})])
    network = own.trainer._problem.network(own.spec.seed, 0)
    inputs, labels = own.trainer._problem.train.inputs, own.trainer._problem.train.labels
    optimizer, batches = torch.optim.SGD(network.parameters(), lr=0.1), program._batches.ahead(Clock(), [4] * 20)

    for batch in (each.numbers[0] for each in batches):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(inputs[batch]), labels[batch]).backward()
        optimizer.step()

    expected = torch.cat([parameter.detach().flatten() for parameter in network.parameters()])
    torch.testing.assert_close(torch.from_numpy(trained(program).state()["parameters"][0]), expected)


def test_a_pack_trains_as_its_trials_do_alone(make_own):
    own = make_own()

    together = trained(program_of(own, 3)).state()["parameters"]

    for trial in range(3):
        alone = trained(own.trainer.program(own.spec.study(4), [Point(trial, POINT)])).state()["parameters"][0]
        torch.testing.assert_close(torch.from_numpy(together[trial]), torch.from_numpy(alone), rtol=1e-4, atol=1e-5)


def test_a_network_that_can_be_vectorised_is_packed_and_one_with_dropout_is_not(make_own):
    def with_dropout():
        return nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.5), nn.Linear(8, 2))

    packed, single = make_own(), make_own(model=with_dropout)

    assert isinstance(packed.trainer.pack_size(packed.spec.study(4)), UpTo)
    assert single.trainer.pack_size(single.spec.study(4)) == 1


class WithParameters(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.zeros(2))

    def forward(self, outputs, labels):
        return (outputs - self.centres).square().mean()


class Skipping(nn.Module):
    """Leaves a layer out by a draw that PyTorch knows nothing of: never, on these few passes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 8), nn.Linear(8, 2))

    def forward(self, inputs):
        return self.layers(inputs) * (random.random() < 2)


class Centred(nn.Module):
    """Replaces its buffer by another tensor, which a vectorised pass forgets."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, inputs):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * inputs.mean(0).detach()
        return self.layer(inputs - self.mean)


@pytest.mark.parametrize("model", [Skipping, Centred])
def test_what_would_train_otherwise_in_a_pack_is_not_packed_though_it_is_asked_for(make_own, model):
    auto, asked = make_own(model=model), make_own(model=model, engine={"pack_size": 2})

    assert auto.trainer.pack_size(auto.spec.study(4)) == 1
    with pytest.raises(SpecError, match="engine.pack_size = 2: trials of this network cannot be trained together"):
        asked.trainer.check(asked.spec.study(4))


def test_a_network_that_is_returned_twice_is_refused(make_own):
    network = nn.Linear(2, 2)
    own = make_own(model=lambda: network)

    with pytest.raises(TrainerError, match="model\\(\\) returned the same network again"):
        program_of(own, num_trials=2)


def test_a_dataset_of_tensors_that_changes_its_items_is_read(make_own):
    class Flipped(TensorDataset):
        def __getitem__(self, index):
            inputs, label = super().__getitem__(index)
            return inputs, 1 - label

    plain, flipped = (
        program_of(make_own(val=kind(*examples(50, 1)))).evaluate()["val/error"] for kind in (TensorDataset, Flipped)
    )

    assert flipped == pytest.approx(1 - plain)


def test_a_metric_that_changes_its_arguments_changes_no_other(make_own):
    def spoils(outputs, labels):
        labels.zero_()
        return outputs.abs_().mean()

    def mean(outputs, labels):
        return outputs.mean() + labels.float().mean()

    found, alone = (
        program_of(make_own(metrics=metrics)).evaluate()["val/mean"]
        for metrics in ({"spoils": spoils, "mean": mean}, {"mean": mean})
    )

    assert found == alone


def test_complex_outputs_keep_their_imaginary_part(make_own):
    class Fourier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 8)

        def forward(self, inputs):
            return torch.fft.fft(self.layer(inputs))

    def loss(outputs, labels):
        return outputs.abs().square().mean()

    own = make_own(model=Fourier, loss=loss, metrics={})
    inputs, labels = examples(50, 1)

    found = program_of(own).evaluate()["val/loss"][0]

    assert found == pytest.approx(loss(own.trainer.network(0)(inputs), labels).item(), rel=1e-5)


def test_normalisation_without_running_statistics_can_be_trained(make_own):
    own = make_own(model=lambda: nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8, track_running_stats=False)))

    assert program_of(own).step == 0


def test_a_network_with_our_ghost_normalisation_trains_one_by_one(make_own):
    """A pack would leave its running averages where they are."""

    def with_ghosts():
        return nn.Sequential(
            nn.Linear(2, 8), nn.Unflatten(1, (8, 1, 1)), GhostNorm(8, 2), nn.Flatten(), nn.Linear(8, 2)
        )

    own = make_own(model=with_ghosts)

    assert own.trainer.pack_size(own.spec.study(4)) == 1


@pytest.mark.parametrize("num_trials", [1, 2])
def test_a_frozen_weight_stays_under_weight_decay_and_in_a_checkpoint(make_own, num_trials):
    def half_frozen():
        network = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
        network[0].requires_grad_(False)
        return network

    own = make_own(model=half_frozen)
    points = [Point(trial, POINT | {"weight_decay": 0.5}) for trial in range(num_trials)]
    program = own.trainer.program(own.spec.study(4), points)
    before = program.state()

    after = trained(program).state()

    frozen = {name: value for name, value in before.items() if name.startswith("buffer.0.")}
    assert sorted(frozen) == ["buffer.0.bias", "buffer.0.weight"]
    assert all((after[name] == value).all() for name, value in frozen.items())
    assert (after["parameters"] != before["parameters"]).all()
    resumed = own.trainer.program(own.spec.study(4), points, after)
    assert resumed.evaluate()["val/loss"].tolist() == program.evaluate()["val/loss"].tolist()


def test_metrics_are_of_the_whole_split_and_the_loss_is_among_them(make_own):
    own = make_own(metrics={"largest": lambda outputs, labels: outputs.max(), "count": lambda o, labels: len(labels)})
    program = trained(program_of(own, 2))

    metrics = program.evaluate()

    with torch.no_grad():
        outputs = program._forward.logits(own.trainer._examples["val"].inputs.expand(2, -1, -1))
    labels = own.trainer._examples["val"].labels
    assert metrics["val/count"].tolist() == [50, 50]
    torch.testing.assert_close(torch.tensor(metrics["val/largest"]).float(), outputs.amax((1, 2)))
    expected = [nn.functional.cross_entropy(each, labels).item() for each in outputs]
    assert metrics["val/loss"].tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", ["arrays", "tensors"])
def test_data_may_come_in_several_forms(make_own, kind):
    inputs, labels = torch.randn(30, 2), torch.randint(0, 2, (30,))
    forms = {
        "arrays": (inputs.double().numpy(), labels.numpy()),
        "tensors": TensorDataset(inputs, labels),
    }

    split = make_own(train=forms[kind]).trainer._examples["train"]

    torch.testing.assert_close(split.inputs, inputs)
    assert torch.equal(split.labels, labels)


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"model": None}, InputError, "`model` is no function: give one, such as `lambda: Net()`"),
        ({"model": nn.Linear(2, 2)}, InputError, "`model` is a network, and every trial begins with a new one"),
        ({"model": lambda: nn.Linear(2)}, InputError, "model() fails: TypeError: "),
        ({"metrics": [max]}, InputError, '`metrics` is a list: give functions by name, {"error": error}.'),
        ({"metrics": {"loss": max}}, InputError, "metrics: `loss` is always measured, and is the loss"),
        ({"metrics": {"top 5": max}}, InputError, "metrics: 'top 5' is no name: give a word, such as error."),
        ({"metrics": {3: max}}, InputError, "metrics: 3 is no name"),
        ({"metrics": {"error": 3}}, InputError, "metrics: error is no function: give one that returns one number."),
        ({"model": lambda: 3}, TrainerError, "model() returned int, not a torch.nn.Module"),
        ({"model": nn.Flatten}, TrainerError, "model() returned Flatten, which has no parameters to train"),
        ({"train": 7}, TrainerError, "train is int: give a pair of tensors, inputs and labels"),
        ({"val": (torch.ones(3, 2), torch.ones(2))}, TrainerError, "val has 3 inputs and 2 labels"),
        ({"val": (torch.ones(2, 2), np.array(["a", "b"]))}, TrainerError, "An array of <U1 cannot be trained on"),
        ({"loss": WithParameters()}, InputError, "`loss` has parameters, which would not be trained"),
        ({"search_space": ["learning_rate"]}, InputError, "search_space is list: give a table"),
        ({"search_space": {"learning_rate": 0.1}}, SpecError, "search_space.learning_rate = 0.1: give (min, max)"),
        ({"search_space": {"rate": (0.1, 1)}}, SpecError, 'Unknown metaparameter of own/Net/adamw "rate"'),
        ({"optimizer": "adan"}, SpecError, 'Unknown optimizer "adan". Did you mean "adam"?'),
        ({"goal": "val/eror < 0.2"}, SpecError, 'Unknown metric "val/eror". Did you mean "val/error"?'),
        ({"batch_sizes": [500]}, SpecError, "batch size 500 is larger than the training set (200 examples)"),
        ({"trails": 3}, SpecError, "trails"),
    ],
)
def test_what_is_wrong_is_one_sentence(make_own, changes, error, sentence):
    with pytest.raises(error) as caught:
        own = make_own(**changes)
        for study in own.spec.studies():
            own.trainer.check(study)
        own.trainer._network()

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_loss_that_is_no_number_is_told(make_own):
    own = make_own(loss=lambda outputs, labels: nn.functional.cross_entropy(outputs, labels, reduction="none"))

    with pytest.raises(TrainerError, match=r"The loss of a batch is a tensor of shape \(4,\), not one number"):
        program_of(own).advance(1)


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        (lambda outputs, labels: 0.5, r"loss\(outputs, labels\) returned float: return a tensor of one number"),
        (lambda outputs, labels: (outputs.argmax(1) != labels).float().mean(), "returned a loss without a gradient"),
    ],
)
def test_a_loss_that_cannot_be_differentiated_is_told(make_own, loss, sentence):
    own = make_own(loss=loss)

    assert own.trainer.pack_size(own.spec.study(4)) == 1
    with pytest.raises(TrainerError, match=sentence):
        program_of(own).advance(1)


def test_at_a_prompt_it_is_trained_in_this_process(make_own, tmp_path):
    summary = run_sweep(make_own(), tmp_path / "lab")

    assert [row.batch_size for row in summary.rows] == [4, 16]
    assert all(row.steps is not None for row in summary.rows)


class LastNorm(Observer):
    """The norm of the last gradient of a batch, at every other step."""

    metrics = ("train/norm",)

    def start(self, parameters):
        return {"norm": parameters.new_full((len(parameters),), torch.nan)}

    def see_batch(self, state, batch):
        state["norm"] = batch.gradients.norm(dim=1).where(torch.tensor(batch.step % 2 == 0), torch.nan)

    def report(self, state):
        return {"train/norm": state["norm"]}


def test_what_observers_report_is_stored_at_the_steps_where_it_is_measured(make_own, tmp_path):
    own = make_own(observers=[LastNorm()], evaluate={"every": 1}, max_steps=30, batch_sizes=[16], protocol="full")

    run_sweep(own, tmp_path / "lab")

    (result,) = Lab.open(tmp_path / "lab").results(own.spec).results
    rows = result.measurements
    is_seen = (rows.step % 2 == 0) & (rows.step > 0)
    assert sorted(rows.metrics) == ["train/norm", "val/error", "val/loss"]
    assert np.array_equal(np.isfinite(rows.metrics["train/norm"]), is_seen)
    assert (rows.metrics["train/norm"][is_seen] > 0).all()


def test_a_goal_may_be_of_what_is_observed_if_it_is_a_number_from_the_start(make_own, tmp_path):
    own = make_own(observers=[LastNorm()], goal="train/norm < 0.5")

    with pytest.raises(TrainerError, match=r'evaluate\(\)\["train/norm"\] is nan at step 0'):
        run_sweep(own, tmp_path / "lab")


@pytest.mark.parametrize("observer", [LastNorm, type("Loss", (LastNorm,), {"metrics": ("norm",)})()])
def test_what_is_no_observer_is_refused_at_once(make_own, observer):
    with pytest.raises(InputError, match="is no observer: give an object, LastNorm|call it train/NAME"):
        make_own(observers=[observer])


def test_an_observer_takes_no_name_that_is_measured(make_own, tmp_path):
    observer = type("Loss", (LastNorm,), {"metrics": ("train/loss",)})()
    own = make_own(observers=[observer], evaluate={"every": 10, "splits": ["train", "val"]})

    with pytest.raises(InputError, match=r"Loss.metrics: train/loss is measured already: choose another name\."):
        run_sweep(own, tmp_path / "lab")


class Halving(torch.optim.Optimizer):
    """Gradient descent at half the rate, with nothing to keep."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.sub_(parameter.grad, alpha=group["lr"] / 2)


def test_an_optimizer_may_be_a_class_of_ones_own(make_own, monkeypatch):
    monkeypatch.setattr(registry, "OPTIMIZERS", dict(registry.OPTIMIZERS))
    own = make_own(optimizer=Halving, search_space={"learning_rate": [0.2]})
    sgd = make_own(optimizer="sgd", search_space={"learning_rate": [0.1]})

    assert own.spec.workload.name == "own/Net/Halving"
    by_class = own.trainer.program(own.spec.study(4), [Point(0, {"learning_rate": 0.2})])
    by_name = sgd.trainer.program(sgd.spec.study(4), [Point(0, {"learning_rate": 0.1})])
    torch.testing.assert_close(
        torch.from_numpy(trained(by_class).state()["parameters"]),
        torch.from_numpy(trained(by_name).state()["parameters"]),
    )


def test_a_class_that_is_no_optimizer_is_told(make_own):
    with pytest.raises(InputError, match=r"Net is no torch.optim.Optimizer: extend that, or give a name"):
        make_own(optimizer=type("Net", (), {}))


@pytest.mark.parametrize("num_trials", [1, 3])
def test_the_weights_of_a_trial_are_a_state_of_its_network(make_own, num_trials):
    def normalised():
        return nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    own = make_own(model=normalised)
    program = trained(program_of(own, num_trials, batch_size=16))
    network, val = normalised(), own.trainer._examples["val"]

    network.load_state_dict({name: torch.from_numpy(each) for name, each in program.weights(num_trials - 1).items()})

    loss = nn.functional.cross_entropy(network.eval()(val.inputs), val.labels).item()
    assert loss == pytest.approx(program.evaluate()["val/loss"][-1], rel=1e-5)
