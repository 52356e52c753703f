"""One trial on 1, 2 and 4 workers: the global batch defines its training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from batchlab.engine.gang import buckets as buckets_module
from batchlab.engine.gang.buckets import Buckets
from batchlab.engine.gang.exchange import ALONE
from batchlab.engine.gang.share import Share
from batchlab.engine.gang.whole_batch import WholeBatch
from batchlab.errors import SpecError, TrainerError
from batchlab.optim.layout import Layout
from tests.engine.gang.cases import NETWORKS, Gang, gradients, trained

SIZES = (2, 4)
ATTENTION = nn.MultiheadAttention(5, 1, dropout=0.5)


@pytest.fixture(scope="module")
def gang(tmp_path_factory):
    gang = Gang(tmp_path_factory.mktemp("gang"))
    yield gang
    gang.close()


class Pretended:
    """A worker that says nothing: to see what is its share."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size


def distance(first, second):
    """Return how far two arrays lie apart, relative to their size."""
    return np.linalg.norm(first - second) / max(np.linalg.norm(second), 1e-30)


def check_near(gang, function, **case):
    """Check that 2 and 4 workers find what one finds, and each of them the same bits."""
    alone = function(ALONE, **case)
    for size in SIZES:
        first, *others = gang.do(size, function, **case)
        for name in alone:
            assert all(np.array_equal(each[name], first[name]) for each in others), name
            assert distance(first[name], alone[name]) < 1e-6, name


@pytest.mark.parametrize("microbatch_size", [1000, 16])
@pytest.mark.parametrize("network", NETWORKS)
def test_gradients_are_those_of_one_worker(gang, network, microbatch_size):
    check_near(gang, gradients, network=network, microbatch_size=microbatch_size)


@pytest.mark.slow
@pytest.mark.parametrize("microbatch_size", [1000, 16])
@pytest.mark.parametrize("network", NETWORKS)
def test_50_steps_in_float64_are_those_of_one_worker(gang, network, microbatch_size):
    """Weights, what the optimizer remembers, running statistics and metrics."""
    check_near(gang, trained, network=network, microbatch_size=microbatch_size, precision="float64")


@pytest.mark.parametrize("network", ["simple_cnn", "resnet_8"])
def test_so_are_those_of_several_trials_at_once(gang, network):
    check_near(gang, gradients, network=network, num_trials=3)


def test_a_batch_that_cannot_be_shared_equally_is_still_whole(gang):
    """Of 19 examples in microbatches of 16 and 3, one of four workers has none of the last."""
    check_near(gang, gradients, network="resnet_8", microbatch_size=16, batch_size=19)


class Recording:
    """A worker that takes note of what it is asked to sum."""

    rank, size = 0, 2

    def __init__(self):
        self.begun = []

    def begin(self, tensor):
        self.begun.append(tensor.tolist())
        return ALONE

    def agree(self, numbers):
        return numbers


def test_from_the_second_step_on_buckets_are_sent_in_the_order_in_which_they_are_complete(monkeypatch):
    monkeypatch.setattr(buckets_module, "BUCKET_BYTES", 8)
    layout, exchange = Layout(("a", "b", "c", "d"), ((1,), (1,), (2,), (1,))), Recording()
    buckets = Buckets(layout, torch.arange(5.0), exchange)
    buckets.start()
    for name in ("c", "b", "a"):  # d is no part of the loss
        buckets.add(name)
    assert exchange.begun == []
    buckets.finish()
    assert exchange.begun == [[0, 1], [2, 3], [4]]

    exchange.begun.clear()
    buckets.start()
    buckets.add("b")
    buckets.add("a")
    assert exchange.begun == []  # c comes first, at every worker
    buckets.add("c")
    assert exchange.begun == [[2, 3], [0, 1]]
    with pytest.raises(TrainerError, match="The gradient of c came in several parts"):
        buckets.add("c")


def test_gradients_that_come_in_several_parts_are_sent_at_the_end(monkeypatch):
    monkeypatch.setattr(buckets_module, "BUCKET_BYTES", 4)
    exchange = Recording()
    buckets = Buckets(Layout(("a", "b"), ((1,), (1,))), torch.arange(2.0), exchange)
    for _ in range(2):
        exchange.begun.clear()
        buckets.start()
        for name in ("b", "a", "a"):
            buckets.add(name)
        assert exchange.begun == []
        buckets.finish()
        assert sorted(exchange.begun) == [[0], [1]]


def test_all_workers_see_a_trial_diverge_at_the_same_step(gang):
    case = {"network": "resnet_8", "rate": 1e4, "num_trials": 2}
    alone = trained(ALONE, **case)["diverged"]

    assert len(alone) == 2
    for each in gang.do(2, trained, **case):
        assert each["diverged"].tolist() == alone.tolist()


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ({"network": "resnet_8", "batch_size": 1}, "A batch of 1 example cannot be shared by 2 workers"),
        ({"network": "resnet_50", "batch_size": 4}, r"A batch of 4 examples \(ghosts of 4\) cannot be shared"),
        ({"network": "own", "batch_size": 17, "microbatch_size": 8}, "has one of 1 example, which cannot be shared"),
        ({"network": "own", "num_trials": 2}, "engine.pack_size: .* train one by one"),
    ],
)
def test_what_cannot_be_shared_is_refused(gang, case, told):
    with pytest.raises(SpecError, match=told):
        gang.do(2, trained, **case)


@pytest.mark.parametrize("num_examples", [1, 5, 16, 17, 31])
@pytest.mark.parametrize("ghost_size", [1, 4])
def test_shares_are_whole_ghosts_and_make_up_the_whole(ghost_size, num_examples):
    shares = [Share(rank, 3, ghost_size)(slice(8, 8 + num_examples)) for rank in range(3)]

    assert [place for each in shares for place in range(8, 8 + num_examples)[each.start - 8 : each.stop - 8]] == list(
        range(8, 8 + num_examples)
    )
    assert all((each.start - 8) % ghost_size == 0 for each in shares if each.start < each.stop)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Dropout(0.5), (6, 3, 4, 4)),
        (nn.Dropout2d(0.5), (6, 3, 4, 4)),
        (nn.AlphaDropout(0.5), (6, 5)),
    ],
)
@pytest.mark.parametrize("is_channels_last", [False, True])
def test_what_is_dropped_is_the_share_of_what_one_worker_drops(layer, shape, is_channels_last):
    inputs = torch.randn(shape)
    if is_channels_last:
        inputs = inputs.movedim(1, -1).contiguous().movedim(-1, 1)
    torch.manual_seed(7)
    whole = layer(inputs)

    torch.manual_seed(7)
    with WholeBatch(Pretended(1, 3), 6).at(slice(2, 4), 6):
        share = layer(inputs[2:4])

    assert torch.equal(share, whole[2:4])


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (lambda inputs: inputs + torch.rand_like(inputs), "rand_like"),
        (nn.RReLU(), "rrelu"),
        (nn.LSTM(5, 5, 2, dropout=0.5), "lstm"),
        (lambda inputs: ATTENTION(inputs, inputs, inputs), "multi_head_attention"),
        (lambda inputs: nn.functional.scaled_dot_product_attention(*[inputs] * 3, dropout_p=0.5), "scaled_dot_product"),
    ],
)
def test_other_chance_is_announced_once(draw, name):
    inputs, mode = torch.randn(3, 4, 5), WholeBatch(Pretended(0, 2), 6)

    def draw_twice():
        with mode.at(slice(0, 3), 6):
            draw(inputs)
            draw(inputs)

    with pytest.warns(UserWarning, match=f"{name}.* cannot be shared by 2 workers") as told:
        draw_twice()

    assert len(told) == 1


@pytest.mark.filterwarnings("error")
def test_what_draws_nothing_is_not():
    inputs, recurrent, attention = torch.randn(3, 4, 5), nn.LSTM(5, 5, 2), nn.MultiheadAttention(5, 1)

    with WholeBatch(Pretended(0, 2), 6).at(slice(0, 3), 6):
        recurrent(inputs)
        attention(inputs, inputs, inputs)
        nn.functional.rrelu(inputs)
