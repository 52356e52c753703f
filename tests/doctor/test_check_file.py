"""What `batchlab check` makes of a sweep: the step that the engine makes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from batchlab.doctor.causes import Cause
from batchlab.doctor.check_file import check_sweep, make_step
from batchlab.doctor.gradient import Gradient, distance
from batchlab.engine.base import Point
from batchlab.errors import InputError
from batchlab.own.loop_sweep import LoopSweep
from batchlab.own.torch_sweep import TorchSweep


def classes(count, seed):
    points = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return points, (points.prod(1) > 0).long()


def make_sweep(model=None, batch_size=16, **changes):
    keywords = {
        "name": "own",
        "model": model or (lambda: nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))),
        "train": classes(60, 0),
        "val": classes(20, 1),
        "loss": nn.functional.cross_entropy,
        "batch_sizes": [batch_size],
        "goal": "val/loss < 0.2",
        "trials": 2,
        "search_space": {"learning_rate": (1e-2, 1e-1, "log")},
    }
    return TorchSweep(**{**keywords, **changes})


def stepped(module, batch):
    inputs, labels = batch
    return nn.functional.cross_entropy(module(inputs), labels)


@pytest.mark.parametrize("changes", [{}, {"loss": None, "training_step": stepped}], ids=["loss", "training_step"])
def test_a_sweep_with_a_mean_loss_is_equivalent(changes):
    verdict = check_sweep(make_sweep(**changes))

    assert verdict.is_equivalent
    assert verdict.num_examples == 16
    assert [row.cut for row in verdict.rows] == ["2 x 8", "4 x 4", "2 x 6 + 4", "16 x 1"]


def test_the_microbatches_of_a_sweep_are_what_is_checked():
    verdict = check_sweep(make_sweep(engine={"microbatch_size": 7}))

    assert [row.cut for row in verdict.rows] == ["2 x 7 + 2"]


def test_a_sweep_whose_loss_is_a_sum_has_a_wrong_factor():
    verdict = check_sweep(make_sweep(loss=nn.CrossEntropyLoss(reduction="sum"), engine={"microbatch_size": 4}))

    assert verdict.causes == (Cause.FACTOR,)


def test_a_sweep_with_batch_normalisation_is_told():
    model = lambda: nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))  # noqa: E731

    verdict = check_sweep(make_sweep(model))

    assert verdict.causes == (Cause.BATCH_NORM,)


def test_a_loop_of_ones_own_is_refused_with_the_way_out():
    def train(batch_size, seed, learning_rate):
        yield 1, {"val/loss": 0.1}

    sweep = LoopSweep(
        name="loop", train=train, batch_sizes=[1], goal="val/loss < 0.2", trials=1, max_steps=2, search_space={}
    )

    with pytest.raises(InputError, match=r"check it by `batchlab.equivalence\(step, batch, model\)`"):
        check_sweep(sweep)


@pytest.mark.parametrize("changes", [{}, {"loss": None, "training_step": stepped}], ids=["loss", "training_step"])
def test_the_step_that_is_checked_is_the_engines(changes, one_thread):
    """One update of plain SGD at learning rate 1 tells the gradient that a program has computed of its microbatches."""
    sweep = make_sweep(batch_size=60, engine={"microbatch_size": 25}, **changes)
    study = sweep.spec.study(60)
    program = sweep.trainer.program(study, [Point(0, study.metaparameters({"learning_rate": 1.0}))])
    before = {name: torch.from_numpy(each.copy()) for name, each in program.weights(0).items()}
    program.advance(1)
    updated = {name: before[name] - torch.from_numpy(each) for name, each in program.weights(0).items()}

    network = sweep.trainer.network(sweep.spec.seed)
    inputs, labels = sweep.trainer.first_batch(60)  # all of them: in which order does not matter
    microbatches = list(zip(inputs.split(25), labels.split(25), strict=True))
    make_step(sweep.trainer)(network, microbatches)
    gradients = {name: each.grad for name, each in network.named_parameters()}

    assert updated.keys() == gradients.keys()
    assert distance(Gradient.of(updated), Gradient.of({name: gradients[name] for name in updated})) < 1e-6
