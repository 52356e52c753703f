"""Layout: where the parameters of a network lie in a row of the parameter matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from torch import Tensor

from batchlab.core.shapes import stored_shape


@dataclass(frozen=True)
class Layout:
    """Named segments of a row, one after the other: a segment is a parameter, in the order of its memory."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    """As the network sees them; the weight of a convolution [O, C, h, w] lies in a row as [O, h, w, C]."""

    @classmethod
    def of(cls, parameters: Mapping[str, Tensor]) -> Layout:
        """Return the layout of a network's parameters, in their order."""
        return cls(tuple(parameters), tuple(tuple(each.shape) for each in parameters.values()))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first column of each segment, and the number of columns."""
        return tuple(accumulate((math.prod(shape) for shape in self.shapes), initial=0))

    @property
    def size(self) -> int:
        """P, the number of columns."""
        return self.starts[-1]

    def segments(self, matrix: Tensor) -> dict[str, Tensor]:
        """Return the segments of a matrix [K, P] by name: views [K, *shape]."""
        views = {}
        for name, shape, start in zip(self.names, self.shapes, self.starts, strict=False):
            flat = matrix[:, start : start + math.prod(shape)]
            views[name] = _seen(flat.unflatten(1, stored_shape(shape))) if shape else flat.squeeze(1)
        return views


def _seen(values: Tensor) -> Tensor:
    """Return values [K, ...] in the order of memory as the network sees them."""
    return values.permute(0, 1, 4, 2, 3) if values.dim() == 5 else values
