"""How many examples of a batch are computed at once: as many as fit into the memory of a GPU, or about into the caches
of a processor.

What a forward pass keeps for its backward pass is measured on a few examples. On a GPU that runs out of memory all the
same it is halved and the step computed again; see `engine.program`.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from batchlab.core.study import Study
from batchlab.engine.forward import Forward, in_dtype
from batchlab.engine.noise import Noise
from batchlab.engine.trainable import Trainable
from batchlab.errors import BatchlabError
from batchlab.models.base import Network
from batchlab.models.ghost_norm import GhostNorm

MicrobatchSize = int | Literal["auto"]

SAMPLE = 4
"""Examples in the measurement."""

GPU_SHARE = 0.5
"""The share of a GPU's memory that may be taken; gradients and the libraries' own buffers need the rest."""

CPU_BYTES = 1 << 27
"""What a microbatch may keep on a processor. Larger ones are slower: ResNet-8 at batch size 1,024 trains 1,058
examples/s in microbatches of 128, and 690 at once."""

CPU_EXAMPLES = 32
"""The fewest examples in a microbatch on a processor: fewer do not repay going through all weights once more."""


def first_microbatch(problem: Trainable, forward: Forward, study: Study, wanted: MicrobatchSize) -> int:
    """Return the size that a program begins with: what is wanted, or what fits, and no more than its largest batch."""
    largest = len(problem.train) if study.workload.schedules_batch_size else study.batch_size
    return largest_microbatch(problem, forward, largest) if wanted == "auto" else min(wanted, largest)


def largest_microbatch(problem: Trainable, forward: Forward, batch_size: int) -> int:
    """Return `batch_size` where it fits, else the largest power of two of ghosts that does, and no less than one."""
    most = int(microbatch_bytes(problem.device) / bytes_per_example(problem, forward))
    if problem.device.type == "cpu":
        most = max(most, CPU_EXAMPLES)
    if batch_size <= most:
        return batch_size
    ghost_size = ghost_size_of(forward.network)
    return min(batch_size, ghost_size << max(0, (most // ghost_size).bit_length() - 1))


def halved(microbatch_size: int, network: nn.Module) -> int:
    """Return half of a microbatch that ran out of memory, in whole ghosts; BatchlabError where it cannot be cut.

    A module of somebody else's may normalise over a microbatch: to cut it is its user's decision.
    """
    if not isinstance(network, Network):
        raise BatchlabError(
            f"The device has not enough memory for {microbatch_size:,} examples of {type(network).__name__} at once: "
            "cut batches with engine.microbatch_size, if that leaves your network and loss as they are."
        )
    ghost_size = network.ghost_size
    half = max(ghost_size, microbatch_size // 2 // ghost_size * ghost_size)
    if half >= microbatch_size:
        fewest = "one example" if ghost_size == 1 else f"a ghost of {ghost_size} examples"
        raise BatchlabError(
            f"The device has not enough memory for {fewest}: take a smaller model or input, or another engine.device."
        )
    return half


def bytes_per_example(problem: Trainable, forward: Forward) -> float:
    """Return what one example of every trial keeps in memory between the passes, twice: values and gradients."""
    num_trials, size = len(forward.parameters.values), min(SAMPLE, len(problem.train))
    sample = problem.train.first(size, num_trials, problem.device)
    known = {view.untyped_storage().data_ptr() for view in forward.parameters.views.values()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with forward.untouched(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        forward.begin_step()
        outputs = problem.outputs(forward, sample, Noise())
        sums = problem.loss_sums(in_dtype(outputs, torch.float32), sample)
        del sums
    return max(1.0, 2 * sum(kept.values()) / size)


def microbatch_bytes(device: torch.device) -> float:
    """Return what one microbatch may keep in memory between its passes."""
    if device.type == "cuda":
        return GPU_SHARE * torch.cuda.get_device_properties(device).total_memory
    return CPU_BYTES


def may_run_out(device: torch.device) -> bool:
    """Return whether a device says that its memory is full: a processor's swaps, or ends the process."""
    return device.type != "cpu"


def ghost_size_of(network: nn.Module) -> int:
    """Return how many consecutive examples of a batch a network computes together; 1 where it does not say."""
    if isinstance(network, Network):
        return network.ghost_size
    return math.lcm(*(each.ghost_size for each in network.modules() if isinstance(each, Network | GhostNorm)))
