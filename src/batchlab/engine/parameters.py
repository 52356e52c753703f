"""The parameters and gradients of K trials, as two [K, P] matrices that networks see through named views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Self

import torch
from torch import Tensor, nn

from batchlab.engine.gang.buckets import Buckets
from batchlab.engine.gang.exchange import ALONE, Exchange
from batchlab.models.packed import in_place
from batchlab.optim.layout import Layout

ROW = 16
"""Numbers in 64 bytes."""

SCATTERED = 1 << 16
"""Numbers of a parameter, in the mean, from which on its gradient is not moved: below, an update of its own costs more
than that."""


class ParameterMatrix:
    """One trial in each row. `views` are leaves of autograd that share the memory of `values`.

    Where layers write the gradients of their weights in place (`is_written`), `view.grad` is where they write to.
    Parameters that a network has frozen are not here: no optimizer sees them.
    """

    def __init__(self, values: Tensor, layout: Layout, *, is_written: bool = False) -> None:
        self.layout = layout
        self.values = aligned(values)  # [K, P]
        self.gradients = aligned(torch.zeros_like(values))  # [K, P]
        self.views = {name: view.detach().requires_grad_() for name, view in layout.segments(self.values).items()}
        self._slots = {name: slot.detach() for name, slot in layout.segments(self.gradients).items()}
        self._is_written, self._is_adding = is_written, True
        self._adopted: dict[str, nn.Parameter] = {}
        self._taken: set[str] = set()
        self.is_scattered = False
        self._is_apart, self._num_parts, self._num_missing = False, 0, 0
        self._exchange: Exchange = ALONE
        self._buckets: Buckets | None = None
        self._sum = self.gradients  # of parts that are kept apart: memory of its own where there are any
        self.start(num_microbatches=1)

    @classmethod
    def of(cls, networks: Iterable[nn.Module], *, dtype: torch.dtype = torch.float32, is_written: bool = False) -> Self:
        """Return the matrix with the trained parameters of a network in each row.

        Each is read before the next is asked for: that may be the same module, started anew.
        """
        starts = [_copied(trained_parameters(network)) for network in networks]
        layout, device = Layout.of(starts[0]), next(iter(starts[0].values())).device
        values = torch.empty(len(starts), layout.size, dtype=dtype, device=device)
        for name, view in layout.segments(values).items():
            view.copy_(torch.stack([start[name] for start in starts]))
        return cls(values, layout, is_written=is_written)

    def keep(self, rows: Tensor) -> ParameterMatrix:
        """Return the matrix of some rows alone."""
        kept = ParameterMatrix(self.values[rows], self.layout, is_written=self._is_written)
        kept.share(self._exchange)
        return kept

    def adopt(self, network: nn.Module) -> None:
        """Let the trained parameters of a network, and their gradients, be views of the one row of the matrices."""
        self._adopted = trained_parameters(network)
        for name, parameter in self._adopted.items():
            parameter.data = self.views[name].detach()[0]
            parameter.grad = self._slots[name][0]
            parameter.register_post_accumulate_grad_hook(partial(self._take, name))

    def share(self, exchange: Exchange) -> None:
        """Let `finish` add up the gradients of all workers; those of an adopted network are sent as they come."""
        self._exchange = exchange
        if exchange.size > 1 and self._adopted:
            self._buckets = Buckets(self.layout, self.gradients[0], exchange)

    def scatter_if_large(self) -> None:
        """Let the gradients of a large adopted network stay where autograd makes them: `gradients` then has none.

        To move millions of numbers into the row would cost up to a tenth of a step; `parts` has them.
        """
        self.is_scattered = bool(self._adopted) and self.layout.size >= SCATTERED * len(self.layout.names)

    def _take(self, name: str, parameter: Tensor) -> None:
        """Move a gradient into the row as soon as there is one, while it is in the processor's cache."""
        if self.is_scattered:
            return
        slot, gradient = self._slots[name][0], parameter.grad
        assert gradient is not None
        if name in self._taken:
            slot.add_(gradient)
        else:
            _fill(slot, gradient)
            self._taken.add(name)
        parameter.grad = None
        if self._buckets is not None and self._num_missing == 0:
            self._buckets.add(name)

    def start(self, num_microbatches: int, *, are_seen: bool = False) -> None:
        """Make ready for a gradient in one or more parts; of a single one, layers may write theirs in place.

        Parts that `are_seen` stay apart: after each `differentiate` the matrix holds its part alone.
        """
        self._is_apart, self._num_parts = are_seen and num_microbatches > 1, 0
        self._num_missing = num_microbatches
        self._taken.clear()
        if self._buckets is not None:
            self._buckets.start()
        if self.is_scattered:
            self._forget()
        if self._adopted:
            return
        was_adding, self._is_adding = self._is_adding, num_microbatches > 1 or not self._is_written
        if self._is_adding:
            self.gradients.zero_()
        if self._is_adding != was_adding:
            for name, view in self.views.items():
                view.grad = None if self._is_adding else self._slots[name]

    def differentiate(self, losses: Tensor) -> None:
        """Add each trial's gradient of its own loss to `gradients`; `losses` is [K].

        The trials share no parameters, so the gradient of the sum holds every trial's gradient, exactly.
        A layer that has written its own gradient returns none here.
        """
        self._num_missing -= 1
        if self._is_apart:
            self._put_aside()
        if self._adopted:
            self._differentiate_adopted(losses)
            return
        with in_place():
            gradients = torch.autograd.grad(losses.sum(), list(self.views.values()), allow_unused=True)
        for name, gradient in zip(self.views, gradients, strict=True):
            slot = self._slots[name]
            if gradient is None:
                continue
            if self._is_adding:
                slot.add_(gradient)
            else:
                slot.copy_(gradient)

    def _differentiate_adopted(self, losses: Tensor) -> None:
        """Let autograd make gradients of its own, which `_take` moves into the row; in the end they are views of it."""
        if self.is_scattered:
            losses.sum().backward()
            return
        self._forget()
        losses.sum().backward()
        for name, parameter in self._adopted.items():
            if name not in self._taken:  # no part of this loss
                self._slots[name].zero_()
            parameter.grad = self._slots[name][0]

    def _forget(self) -> None:
        for parameter in self._adopted.values():
            parameter.grad = None

    def parts(self, state: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor, dict[str, Tensor]]]:
        """Yield values, gradients and state of the one row, one parameter of the network after the other."""
        views = {key: self.layout.segments(matrix) for key, matrix in state.items()}
        for name, parameter in self._adopted.items():
            gradient = parameter.grad
            if gradient is None or gradient.is_sparse:
                gradient = _fill(self._slots[name][0], gradient)
            yield parameter.detach(), gradient, {key: segments[name][0] for key, segments in views.items()}

    def _put_aside(self) -> None:
        """Add the part in the matrix, if there is one, to those before it: in the order in which it would be here."""
        if self._num_parts == 1:
            self._sum = self.gradients.clone()
        elif self._num_parts > 1:
            self._sum.add_(self.gradients)
        if self._num_parts > 0:
            self.gradients.zero_()
            self._taken.clear()
        self._num_parts += 1

    def finish(self) -> None:
        """Let the matrix hold the sum of all parts, of all workers."""
        if self._is_apart:
            self.gradients.add_(self._sum)
        if self._buckets is not None:
            self._buckets.finish()
        elif self._exchange.size > 1:
            self._exchange.sum(_with_padding(self.gradients))


def _fill(slot: Tensor, gradient: Tensor | None) -> Tensor:
    """Write a gradient to its slot: zeros for what is no part of the loss, or no row of a sparse one."""
    if gradient is None or gradient.is_sparse:
        slot.zero_()
        return slot if gradient is None else slot.add_(gradient)
    return slot.copy_(gradient)


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def trained_parameters(network: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that a network wants to have trained, by name."""
    return {name: each for name, each in network.named_parameters() if each.requires_grad}


def _with_padding(matrix: Tensor) -> Tensor:
    """Return the whole memory of a matrix whose rows are aligned: one piece."""
    return matrix.as_strided((len(matrix), matrix.stride(0)), matrix.stride())


def aligned(matrix: Tensor) -> Tensor:
    """Return the matrix with every row at a multiple of 64 bytes.

    Products round differently where their operands are not aligned: so a trial's bits would depend on its row.
    """
    num_rows, num_columns = matrix.shape
    padded = matrix.new_zeros(num_rows, -(-num_columns // ROW) * ROW)
    padded[:, :num_columns] = matrix
    return padded[:, :num_columns]
