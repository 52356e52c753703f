"""Whether a network can be built for a dataset and fits into the memory: tried without a number in it.

Tensors on PyTorch's device `meta` have shapes and no contents, so that a forward pass takes milliseconds and no memory,
and fails wherever the real one would. Its first one takes two seconds, though, to import what it is made with: where
network and examples are small, a pass over zeros tells the same at once.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.func import functional_call

from batchlab.core.study import Study
from batchlab.data.base import DatasetFacts
from batchlab.engine.memory import machine_bytes, spell_bytes
from batchlab.errors import SpecError, shown
from batchlab.models.base import Network, num_parameters
from batchlab.models.registry import build_model

NUMBERS = 3
"""Matrices as large as the parameters: these, their gradients, and what the optimizer keeps."""

META = torch.device("meta")

SMALL_NETWORK, SMALL_INPUTS = 10_000_000, 10_000
"""Numbers in a network and in the inputs of a ghost up to which both are small."""


def check_buildable(study: Study, facts: DatasetFacts, device: torch.device) -> None:
    """Raise SpecError where the study's network cannot be built for such examples, or fits into no memory."""
    assert facts.num_classes is not None
    name, memory = study.workload.model.name, device_bytes(device)
    with META:
        model = build_model(study.workload.model, facts.input_shape, facts.num_classes)
    size, trials = num_parameters(model), _trials_at_once(study)
    if 4 * NUMBERS * size * trials > memory:
        packed = f", in packs of {trials:,}," if trials > 1 else ""
        raise SpecError(
            f"model {shown(name)} has {size:,} parameters; training it{packed} takes"
            f" {spell_bytes(4 * NUMBERS * size * trials)} and there are {spell_bytes(memory)}: take a smaller one."
        )
    _check_examples(study, model, facts, memory / trials)


def device_bytes(device: torch.device) -> int:
    """Return the memory of a device."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return machine_bytes()


def _trials_at_once(study: Study) -> int:
    size = study.engine.get("pack_size", "auto")
    return 1 if size == "auto" else min(int(size), study.num_points)


def _check_examples(study: Study, model: Network, facts: DatasetFacts, memory: float) -> None:
    """Check that as many examples can be computed at once as must be: a ghost, or the microbatch of the spec."""
    name, size = study.workload.model.name, study.engine.get("microbatch_size")
    try:
        kept = _bytes_kept(model, facts) / model.ghost_size
    except RuntimeError as error:
        shape = "x".join(map(str, facts.input_shape))
        reason = shown(str(error).partition("\n")[0], 200)
        raise SpecError(f"model {shown(name)} cannot be built for inputs of {shape}: {reason}") from None
    is_scheduled = study.workload.schedules_batch_size
    examples = model.ghost_size if size is None else size if is_scheduled else min(size, study.batch_size)
    if examples * kept > memory:
        raise SpecError(
            f"model {shown(name)} keeps {spell_bytes(examples * kept)} of {examples:,} examples of {facts.name}"
            f" at once, and there are {spell_bytes(memory)}: take a smaller one"
            + (", or fewer with `engine.microbatch_size`." if examples > model.ghost_size else ".")
        )


def _bytes_kept(model: Network, facts: DatasetFacts) -> int:
    """Return what the forward pass of one ghost keeps for its backward pass."""
    shape = (model.ghost_size, *facts.input_shape)
    dtype = torch.int64 if facts.task == "language_model" else torch.float32
    is_small = num_parameters(model) <= SMALL_NETWORK and math.prod(shape) <= SMALL_INPUTS
    contents: dict[str, Tensor] = _zeros(model) if is_small else dict(model.named_parameters())
    inputs = torch.zeros(shape, dtype=dtype, device="cpu" if is_small else META)
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        logits = functional_call(model, contents, (inputs,))
    owned = {tensor.untyped_storage()._cdata for tensor in contents.values()}
    return logits.nbytes + sum(
        tensor.untyped_storage().nbytes() for storage, tensor in kept.items() if storage not in owned
    )


def _zeros(model: Network) -> dict[str, Tensor]:
    """Return a zero for every number of a network that has none."""
    parameters = {name: torch.zeros(each.shape, requires_grad=True) for name, each in model.named_parameters()}
    return parameters | {name: torch.zeros(each.shape, dtype=each.dtype) for name, each in model.named_buffers()}
