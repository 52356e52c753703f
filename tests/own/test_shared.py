"""One trial of one's own network on 1, 2 and 4 workers, however its examples come."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from batchlab.engine.base import Point
from batchlab.engine.gang.exchange import ALONE
from batchlab.errors import SpecError
from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab
from tests.engine.gang.cases import Gang
from tests.own.shared import sweep_of, trained

KINDS = ("tensors", "dataset", "regression", "step", "step dataset")


@pytest.fixture(scope="module")
def gang(tmp_path_factory):
    gang = Gang(tmp_path_factory.mktemp("gang"))
    yield gang
    gang.close()


def distance(first, second):
    return np.linalg.norm(first - second) / max(np.linalg.norm(second), 1e-30)


def check_near(gang, sizes, **case):
    alone = trained(ALONE, **case)
    for size in sizes:
        first, *others = gang.do(size, trained, **case)
        for name in alone:
            assert all(np.array_equal(each[name], first[name]) for each in others), name
            assert distance(first[name], alone[name]) < 1e-6, name


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("microbatch_size", [None, 5])
def test_50_steps_are_those_of_one_worker(gang, kind, microbatch_size):
    """Shares of 3 and 4 examples of a batch of 14; in microbatches one worker of four has one example of four."""
    check_near(gang, (2, 4), kind=kind, batch_size=14, microbatch_size=microbatch_size)


class First:
    """The first of two workers, which the other one tells nothing."""

    rank, size = 0, 2

    def sum(self, tensor):
        return tensor

    def begin(self, tensor):
        return ALONE

    def agree(self, numbers):
        return numbers


def test_a_worker_is_given_its_share_of_a_batch_and_its_loss_counts_by_the_number_of_examples():
    """The first of two has 7 of 15 examples: the mean of their losses, times 7 / 15."""
    own = sweep_of("step", batch_size=15)
    seen = []

    def step(module, batch):
        seen.append(batch)
        return module(batch[0], batch[1]).square().sum(1).mean()

    own.trainer._training_step = step
    own.trainer.join(First())
    program = own.trainer.program(own.spec.studies()[0], [Point(0, {"learning_rate": 0.0, "momentum": 0.0})])
    seen.clear()
    program._forward.network.norm, program._forward.network.dropout = nn.Identity(), nn.Identity()
    (batch,) = program._batches.ahead(program._clock, [15])
    loss = program._differentiate(batch)

    ((points, quadrants, labels),) = seen
    assert [len(points), len(quadrants), len(labels)] == [7, 7, 7]
    assert points.dtype == loss.dtype == torch.float64
    expected = program._forward.network(points, quadrants).square().sum(1).sum() / 15
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ({"batch_size": 3}, "A batch of 3 examples cannot be shared by 4 workers"),
        ({"batch_size": 13, "microbatch_size": 6}, "has one of 1 example, which cannot be shared by 4 workers"),
    ],
)
def test_what_cannot_be_shared_is_refused_before_anything_is_trained(case, told):
    own = sweep_of("tensors", **case)

    with pytest.raises(SpecError, match=told):
        own.trainer.check_shared(own.spec.studies()[0], 4)


FILE = """
from tests.own.shared import sweep_of

sweep = sweep_of("step dataset", workers_per_trial={size})
"""


@pytest.mark.slow
def test_a_file_of_ones_own_trains_on_gangs(tmp_path, monkeypatch):
    from batchlab.own.python_file import load_own_sweep

    monkeypatch.syspath_prepend(".")
    curves = []
    for size in (1, 2):
        path = tmp_path / f"own_{size}.py"
        path.write_text(FILE.format(size=size))
        own = load_own_sweep(path)
        own.file = path
        run_sweep(own, tmp_path / str(size), num_workers=2)
        store = Lab.open(tmp_path / str(size))
        curves.append(store.results(store.find()).results[0].measurements)

    assert curves[0].step.tolist() == curves[1].step.tolist()
    assert all(np.abs(values - curves[1].metrics[name]).max() < 1e-6 for name, values in curves[0].metrics.items())
