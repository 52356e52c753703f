"""Loops while they train: one process, and two with DistributedDataParallel."""

from __future__ import annotations

import multiprocessing
import warnings

import pytest
import torch
from torch import nn

import batchlab
from batchlab.doctor.causes import Cause
from batchlab.doctor.live import check_gradients
from batchlab.errors import InputError
from tests.doctor import ddp_loop, loops
from tests.doctor.loops import EIGHT, PADDING, LanguageModel, sentences, token_loss


def cut(batch, *sizes):
    parts = {name: each.split(sizes) for name, each in batch.items()}
    return [{name: each[index] for name, each in parts.items()} for index in range(len(sizes))]


def watched(step, model=None, sizes=(3, 5), **keywords):
    """Run a step and let the doctor look at the gradients that it leaves."""
    model, microbatches = model or LanguageModel(), cut(sentences(*EIGHT), *sizes)
    step(model, microbatches)
    return check_gradients(model, token_loss, microbatches, **keywords)


def test_a_right_loop_is_equivalent():
    verdict = watched(loops.right_alone)

    assert verdict.is_equivalent
    assert verdict.precision == "float32"
    assert verdict.rows[0].cut == "3 + 5"
    assert verdict.rows[0].comparison.norm_ratio == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("step", "make_model", "cause"),
    [
        (loops.mean_of_means, LanguageModel, Cause.MEAN_OF_MEANS),
        (loops.factor_twice, LanguageModel, Cause.FACTOR),
        (loops.ragged_dropped, LanguageModel, Cause.DROPPED),
        (loops.right_alone, lambda: LanguageModel(nn.BatchNorm1d(8)), Cause.BATCH_NORM),
        (loops.right_alone, lambda: LanguageModel(dropout=0.5), Cause.DROPOUT),
    ],
)
def test_what_a_loop_has_done_wrong_is_named(step, make_model, cause):
    verdict = watched(step, make_model(), sizes=(3, 3, 2))

    assert verdict.causes == (cause,)
    assert not verdict.is_equivalent
    assert watched(step, make_model(), sizes=(3, 3, 2), allow=[cause]).is_equivalent


def test_batch_normalisation_hides_no_other_mistake():
    """It is accepted here, and what is wrong beside it is not."""
    allowed, seen = (
        watched(step, LanguageModel(nn.BatchNorm1d(8)), sizes=(3, 3, 2), allow=["batch normalisation"])
        for step in (loops.right_alone, loops.mean_of_means)
    )
    odd = watched(loops.factor_twice, LanguageModel(nn.BatchNorm1d(8)), sizes=(3, 3, 2), allow=["batch normalisation"])

    assert allowed.is_equivalent
    assert seen.causes == (Cause.BATCH_NORM, Cause.MEAN_OF_MEANS)
    assert not seen.is_equivalent
    assert odd.causes == (Cause.BATCH_NORM, Cause.WEIGHTS)
    assert not odd.is_equivalent


def test_a_loop_goes_on_as_if_nobody_had_looked():
    one, other = LanguageModel(nn.BatchNorm1d(8), dropout=0.2), LanguageModel(nn.BatchNorm1d(8), dropout=0.2)
    microbatches = cut(sentences(*EIGHT), 3, 5)
    for model in (one, other):
        torch.manual_seed(7)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loops.mean_of_means(model, microbatches)
            if model is one:
                batchlab.check_gradients(model, token_loss, microbatches)
            optimizer.step()

    assert all(
        torch.equal(first, second)
        for first, second in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def test_microbatches_of_different_lengths_are_padded():
    model = LanguageModel()
    microbatches = [sentences(4), sentences(60)]
    loops.right_alone(model, microbatches)

    verdict = check_gradients(model, token_loss, microbatches, padding=PADDING)

    assert verdict.rows[0].comparison.norm_ratio == pytest.approx(1, abs=1e-6)
    assert verdict.is_equivalent
    with pytest.raises(InputError, match="say by `padding` what fills them up"):
        check_gradients(model, token_loss, microbatches)


def test_without_microbatches_or_gradients_it_is_told():
    with pytest.raises(InputError, match="There are no microbatches"):
        check_gradients(LanguageModel(), token_loss, [])
    with pytest.raises(InputError, match="left no gradients"):
        check_gradients(LanguageModel(), token_loss, [sentences(4, 5)])


def _tell(queue, rank, meeting_place):
    queue.put(ddp_loop.run_worker(rank, meeting_place))


def test_two_workers_of_ddp_are_told_the_same(tmp_path, one_thread):
    """Real processes, real exchange over gloo. They are copies of this one: that spares them the imports."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    workers = [context.Process(target=_tell, args=(queue, rank, tmp_path / "meet"), daemon=True) for rank in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads beside a copy
        for worker in workers:
            worker.start()
    for worker in workers:
        worker.join(120)
        worker.kill()

    assert [worker.exitcode for worker in workers] == [0, 0]
    first, second = queue.get(), queue.get()
    assert first == second
    assert {name: [each["name"] for each in told["causes"]] for name, told in first.items()} == {
        "right": [],
        "mean_of_means": ["mean of means"],
        "of_one_worker": ["mean of means"],
        "factor": ["factor"],
        "dropped": ["dropped examples"],
        "not_exchanged": ["not exchanged"],
        "padded": [],
        "norm": ["batch normalisation"],
        "dropout": ["dropout"],
    }
    row = first["right"]["rows"][0]
    assert row["cut"] == "3 + 2 | 2 + 1"
    assert row["norm_ratio"] == pytest.approx(1, abs=1e-6)
    assert "1 / 2, the number of workers or microbatches of a worker" in first["factor"]["causes"][0]["evidence"]
    assert first["of_one_worker"]["causes"][0]["evidence"].startswith("each worker counts the same;")


@pytest.mark.parametrize("is_right", [True, False])
def test_what_autocast_rounds_is_no_mistake_and_hides_none(is_right):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    inputs, labels = torch.randn(32, 32), torch.randint(0, 10, (32,))
    microbatches = [(inputs[:4], labels[:4]), (inputs[4:], labels[4:])]

    def loss(model, batch):
        with torch.autocast("cpu", torch.bfloat16):
            return nn.functional.cross_entropy(model(batch[0]), batch[1])

    for each in microbatches:
        (loss(model, each) * (len(each[1]) / 32 if is_right else 0.5)).backward()
    verdict = check_gradients(model, loss, microbatches)

    assert (verdict.precision, verdict.tolerance) == ("bfloat16", 3e-2)
    assert verdict.is_equivalent == is_right
    assert [str(each) for each in verdict.causes] == ([] if is_right else ["mean of means"])
