"""A DDP program of two workers: several loops, and what the doctor says of each."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from batchlab.doctor.live import check_gradients
from tests.doctor.loops import EIGHT, PADDING, LanguageModel, num_tokens, sentences, token_loss

WORKERS = 2


def shares(rank):
    """Return this worker's microbatches: of 3 and 2 sentences on worker 0, of 2 and 1 on worker 1."""
    whole, ends = sentences(*EIGHT), [(0, 3, 5), (5, 7, 8)][rank]
    return [{name: each[a:b] for name, each in whole.items()} for a, b in pairwise(ends)]


def cut_short(microbatches):
    """Return microbatches that are no longer than they need, as a collator makes them."""
    lengths = [int((each["labels"] != -100).sum(1).max()) for each in microbatches]
    return [{k: v[:, :n] for k, v in each.items()} for each, n in zip(microbatches, lengths, strict=True)]


def train(model, microbatches, divisor):
    """Accumulate without exchange, but for the last microbatch, as DDP loops do."""
    for index, microbatch in enumerate(microbatches):
        model.require_backward_grad_sync = index == len(microbatches) - 1
        (token_loss(model, microbatch, "sum") / divisor(microbatch)).backward()


def tokens_of_all(microbatches):
    total = num_tokens(microbatches)
    dist.all_reduce(total)
    return total / WORKERS  # DDP takes the mean over workers


def right(model, microbatches):
    total = tokens_of_all(microbatches)
    train(model, microbatches, lambda microbatch: total)


def mean_of_means(model, microbatches):
    train(model, microbatches, lambda microbatch: num_tokens([microbatch]) * len(microbatches))


def of_one_worker(model, microbatches):
    train(model, microbatches, lambda microbatch: num_tokens(microbatches))


def factor(model, microbatches):
    total = tokens_of_all(microbatches)
    train(model, microbatches, lambda microbatch: total * WORKERS)


def dropped(model, microbatches):
    right(model, microbatches[:1])


def not_exchanged(model, microbatches):
    right(model.module, microbatches)


def run_worker(rank, meeting_place):
    """Return what the doctor says on a worker; both meet by a file."""
    dist.init_process_group("gloo", init_method=f"file://{meeting_place}", rank=rank, world_size=WORKERS)
    loops = (right, mean_of_means, of_one_worker, factor, dropped, not_exchanged)
    told = {loop.__name__: verdict_on(loop, LanguageModel(), shares(rank)) for loop in loops}
    told["padded"] = verdict_on(right, LanguageModel(), cut_short(shares(rank)))
    told["norm"] = verdict_on(right, LanguageModel(nn.BatchNorm1d(8)), shares(rank))
    told["dropout"] = verdict_on(right, LanguageModel(dropout=0.5), shares(rank))
    dist.destroy_process_group()
    return told


def verdict_on(loop, module, microbatches):
    model = DistributedDataParallel(module)
    loop(model, microbatches)
    before = {name: each.grad.clone() for name, each in module.named_parameters()}
    verdict = check_gradients(model, token_loss, microbatches, padding=PADDING)
    assert all(torch.equal(each.grad, before[name]) for name, each in module.named_parameters())
    model.zero_grad()
    right(model, microbatches)  # goes on exchanging
    return verdict.plain()
