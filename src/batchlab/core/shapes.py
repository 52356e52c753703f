"""How the shapes of parameters lie in memory."""

from __future__ import annotations

from collections.abc import Sequence


def stored_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a parameter's shape in the order of its memory: the weight of a convolution lies channels-last.

    >>> stored_shape((8, 3, 5, 5)), stored_shape((8, 3))
    ((8, 5, 5, 3), (8, 3))
    """
    return (shape[0], *shape[2:], shape[1]) if len(shape) == 4 else tuple(shape)
