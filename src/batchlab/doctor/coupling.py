"""Where the examples of a batch touch each other: the first layer that says something else of the same example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

Outputs = dict[str, Tensor]
"""What each module has said of each example, in the order in which modules were done."""


def coupling_layer(
    model: nn.Module, run: Callable[[range], object], whole: range, parts: Sequence[range], tolerance: float
) -> str | None:
    """Return the first module whose outputs for an example depend on which others are in its microbatch, or None.

    Then the loss couples them, or something that is no module.
    """
    together = _outputs(model, run, whole)
    apart = [_outputs(model, run, rows) for rows in parts]
    for name, expected in together.items():
        pieces = [each[name] for each in apart if name in each]
        if len(pieces) == len(parts) and _differs(expected, pieces, tolerance):
            return name
    return None


def _differs(expected: Tensor, pieces: Sequence[Tensor], tolerance: float) -> bool:
    if {each.shape[1:] for each in pieces} != {expected.shape[1:]}:
        return False
    difference = float((torch.cat(list(pieces)) - expected).norm())
    return difference > tolerance * float(expected.norm())


def _outputs(model: nn.Module, run: Callable[[range], object], rows: range) -> Outputs:
    with _recorded(model, len(rows)) as outputs:
        run(rows)
    return outputs


@contextmanager
def _recorded(model: nn.Module, num_examples: int) -> Iterator[Outputs]:
    """Give what modules return for so many examples while the body runs; of several calls, the first."""
    outputs: Outputs = {}
    handles = [
        module.register_forward_hook(_recorder(name or type(model).__name__, num_examples, outputs))
        for name, module in model.named_modules()
    ]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def _recorder(name: str, num_examples: int, outputs: Outputs) -> Callable[[nn.Module, Any, Any], None]:
    def record(module: nn.Module, arguments: Any, output: Any) -> None:
        is_of_examples = isinstance(output, Tensor) and output.ndim > 0 and len(output) == num_examples
        if is_of_examples and output.is_floating_point():
            outputs.setdefault(name, output.detach().double())

    return record
