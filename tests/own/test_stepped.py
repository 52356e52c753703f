"""A training step of the user's own: several inputs, any batch; repeated and resumed to the bit."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from batchlab.engine.base import Point
from batchlab.engine.order import ExampleOrder
from batchlab.errors import InputError, SpecError, TrainerError
from batchlab.run.run_sweep import run_sweep
from tests.states import equal, trained

POINT = Point(3, {"learning_rate": 0.05, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0})
LAST = 20


class Own(nn.Module):
    """Batch normalisation, dropout and a learned embedding, of two inputs."""

    def __init__(self):
        super().__init__()
        self.dense, self.embedding = nn.Linear(2, 8), nn.Embedding(4, 8)
        self.norm, self.dropout, self.head = nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2)

    def forward(self, points, quadrants):
        hidden = self.norm(self.dense(points)).relu() + self.embedding(quadrants)
        return self.head(self.dropout(hidden))


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.embedding = nn.Linear(2, 2), nn.Embedding(4, 2)

    def forward(self, points, quadrants):
        return self.dense(points) + self.embedding(quadrants)


class Dicts(Dataset):
    """Items with several inputs, disturbed each time."""

    def __init__(self, count, seed, noise=0.1):
        self.points, self.noise = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed)), noise

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        point = self.points[index]
        quadrant, label = int(2 * (point[0] > 0) + (point[1] > 0)), int(point.prod() > 0)
        return {"points": point + self.noise * torch.randn(2), "quadrants": quadrant, "labels": label}


def step(module, batch):
    return nn.functional.cross_entropy(module(batch["points"], batch["quadrants"]), batch["labels"])


def error(module, batch):
    return (module(batch["points"], batch["quadrants"]).argmax(1) != batch["labels"]).float().mean()


@pytest.fixture
def make_stepped(make_own):
    def make(**changes):
        keywords = {
            "model": Own,
            "train": Dicts(60, 0),
            "val": Dicts(50, 1),
            "loss": ...,
            "training_step": step,
            "metrics": {"error": error},
        }
        return make_own(**keywords | changes)

    return make


def program_of(own, batch_size=16, state=None, point=POINT):
    return own.trainer.program(own.spec.study(batch_size), [point], state)


@pytest.mark.parametrize("microbatch_size", [None, 5])
def test_it_trains_as_a_plain_loop_does(make_stepped, microbatch_size):
    """Microbatches are weighted by their examples: 16 are 5, 5, 5 and 1."""
    data, engine = Dicts(60, 0, noise=0.0), {"microbatch_size": microbatch_size} if microbatch_size else {}
    own = make_stepped(model=Plain, train=data, optimizer="sgd", search_space={"learning_rate": [0.1]}, engine=engine)
    program = program_of(own, point=Point(3, {"learning_rate": 0.1}))
    network, order = own.trainer._problem.network(own.spec.seed, 3), ExampleOrder(60, own.spec.seed, 3)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

    for index in range(LAST):
        batch = torch.utils.data.default_collate([data[number] for number in order.take(16 * index, 16)])
        optimizer.zero_grad()
        step(network, batch).backward()
        optimizer.step()

    expected = torch.cat([parameter.detach().flatten() for parameter in network.parameters()])
    torch.testing.assert_close(torch.from_numpy(trained(program, LAST)["parameters"][0]), expected)


@pytest.mark.parametrize("loaders", [0, 1])
def test_two_runs_are_equal_and_one_that_is_stopped_ten_times_too(make_stepped, loaders):
    own = make_stepped(loaders=loaders)
    whole, state = trained(program_of(own), LAST), None

    for stop in range(2, LAST + 1, 2):
        torch.manual_seed(stop)
        state = trained(program_of(make_stepped(loaders=loaders), state=state), stop)

    assert equal(state, whole)
    assert equal(trained(program_of(own), LAST), whole)


def test_it_learns(make_stepped):
    program = program_of(make_stepped())

    trained(program, 150)

    assert program.evaluate()["val/error"] < 0.2


def test_loss_and_metrics_are_averaged_over_the_examples_in_evaluation_mode(make_stepped):
    """Fifty examples are a batch of 32 and one of 18; dropout is off."""
    own = make_stepped(val=Dicts(50, 1, noise=0.0))
    program = program_of(own)
    trained(program, 3)

    metrics = program.evaluate()

    network, whole = (
        program._forward.network,
        torch.utils.data.default_collate([Dicts(50, 1, 0.0)[i] for i in range(50)]),
    )
    with torch.no_grad():
        assert metrics["val/loss"] == pytest.approx(step(network, whole).item(), rel=1e-5)
        assert metrics["val/error"] == pytest.approx(error(network, whole).item())


def test_what_is_drawn_while_evaluating_is_the_same_each_time(make_stepped):
    def noisy(module, batch):
        return step(module, batch) * torch.rand(())

    program = program_of(make_stepped(training_step=noisy))
    before = torch.get_rng_state()

    assert program.evaluate() == program.evaluate()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("kind", ["tuple", "TensorDataset"])
def test_any_number_of_tensors_may_be_given(make_stepped, kind):
    items = [Dicts(60, 0, 0.0)[i] for i in range(60)]
    tensors = tuple(torch.utils.data.default_collate(items).values())
    data = tensors if kind == "tuple" else TensorDataset(*tensors)

    def from_tuple(module, batch):
        return step(module, dict(zip(("points", "quadrants", "labels"), batch, strict=True)))

    held = make_stepped(train=data, val=data, training_step=from_tuple, metrics=None, goal="val/loss < 0")
    read = make_stepped(train=Dicts(60, 0, 0.0), val=Dicts(60, 0, 0.0))
    first, second = program_of(held), program_of(read)

    assert equal(trained(first, LAST), trained(second, LAST))
    assert first.evaluate()["val/loss"] == second.evaluate()["val/loss"]


def test_trials_train_one_by_one(make_stepped):
    own = make_stepped()

    assert own.trainer.pack_size(own.spec.study(4)) == 1
    with pytest.raises(SpecError, match="engine.pack_size = 2: trials with a `training_step` train one by one"):
        make_stepped(engine={"pack_size": 2}).trainer.check(make_stepped(engine={"pack_size": 2}).spec.study(4))


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"loss": step}, InputError, "give either `loss`, of outputs and labels, or `training_step`, of a module and"),
        ({"training_step": None}, InputError, "give either `loss`, of outputs and labels, or `training_step`, of a"),
        ({"training_step": 3}, InputError, "`training_step` is no function: give one, such as `lambda module, batch"),
        (
            {"training_step": lambda module, batch: module(batch["points"], batch["quadrants"])},
            TrainerError,
            "The loss of a batch is a tensor of shape (2, 2), not one number: let training_step take its mean",
        ),
        (
            {"training_step": lambda module, batch: SimpleNamespace(loss=step(module, batch))},
            TrainerError,
            "training_step returned SimpleNamespace, not a tensor: return its `loss`",
        ),
        ({"training_step": lambda module, batch: None}, TrainerError, "training_step returned NoneType, not a tensor"),
        (
            {"training_step": lambda module, batch: step(module, batch).detach()},
            TrainerError,
            "training_step returned a loss without a gradient",
        ),
        ({"metrics": {"error": lambda module, batch: batch["labels"]}}, TrainerError, "error is a tensor of shape"),
        ({"metrics": {"error": lambda module, batch: None}}, TrainerError, "error is NoneType, not one number"),
        (
            {"train": (torch.ones(3), torch.ones(4))},
            TrainerError,
            "train has tensors of 3 and 4 examples: give one row",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(make_stepped, changes, error, sentence):
    with pytest.raises(error) as caught:
        own = make_stepped(**changes)
        program = program_of(own)
        program.advance(1)
        program.evaluate()

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_it_is_studied_as_any_other(make_stepped, tmp_path):
    summary = run_sweep(make_stepped(max_steps=60, goal="val/loss < 0.6"), tmp_path / "lab")

    assert [row.batch_size for row in summary.rows] == [4, 16]
    assert all(row.complete == 2 for row in summary.rows)
