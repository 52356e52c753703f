"""Ways to cut a batch: the sizes of the microbatches of each worker."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any, Literal

from batchlab.errors import InputError, shown

MOST_ONE_BY_ONE = 32
"""Examples of a batch that is also tried one by one, where no cuts are given."""

MORE_COLUMNS = 3
"""Columns of padding that a whole batch gets in addition."""


@dataclass(frozen=True)
class Cut:
    """The examples of each microbatch of each worker, in the order of the batch."""

    shares: tuple[tuple[int, ...], ...]
    padding: Literal["as it is", "longer", "shortest"] = "as it is"
    """Whether columns of padding are added, or those that a microbatch does not need are taken off."""

    @property
    def num_workers(self) -> int:
        """How many workers have a share."""
        return len(self.shares)

    @property
    def num_microbatches(self) -> int:
        """How many microbatches all workers have."""
        return sum(map(len, self.shares))

    @property
    def rows(self) -> list[list[range]]:
        """The places of each worker's microbatches in the batch."""
        ends = iter(accumulate(size for share in self.shares for size in share))
        return [
            [range(end - size, end) for size, end in ((size, next(ends)) for size in share)] for share in self.shares
        ]

    @property
    def microbatches(self) -> list[range]:
        """The places of all microbatches."""
        return [rows for share in self.rows for rows in share]

    def without_padding(self) -> Cut:
        """Return the same cut of the batch as it is."""
        return Cut(self.shares)

    def __str__(self) -> str:
        is_alike = self.num_workers > 1 and len(set(self.shares)) == 1
        sizes = f"{_spelled(self.shares[0])} each" if is_alike else " | ".join(map(_spelled, self.shares))
        return sizes if self.padding == "as it is" else f"{sizes}, {_PADDINGS[self.padding]}"


_PADDINGS = {"longer": f"{MORE_COLUMNS} more columns of padding", "shortest": "no more padding than needed"}


def _spelled(sizes: Sequence[int]) -> str:
    """Return sizes in words.

    >>> _spelled([16, 16, 16, 16]), _spelled([22, 22, 20]), _spelled([64])
    ('4 x 16', '2 x 22 + 20', '64')
    """
    runs = [(size, len(list(run))) for size, run in groupby(sizes)]
    return " + ".join(f"{count} x {size}" if count > 1 else f"{size}" for size, count in runs)


def usual_cuts(num_examples: int, workers: Sequence[int], *, is_padded: bool) -> list[Cut]:
    """Return cuts that bring most mistakes to light: equal, ragged and single microbatches, for each number of workers.

    >>> [str(cut) for cut in usual_cuts(8, [1, 2], is_padded=False)]
    ['2 x 4', '4 x 2', '2 x 3 + 2', '8 x 1', '4 each', '2 x 2 each']
    """
    cuts = [cut for count in workers for cut in _cuts_for(num_examples, count)]
    if is_padded:
        cuts += [Cut(((num_examples,),), "longer"), Cut((tuple(even(num_examples, 2)),), "shortest")]
    return list(dict.fromkeys(cuts))


def _cuts_for(num_examples: int, workers: int) -> Iterator[Cut]:
    if workers > 1:
        shares = even(num_examples, workers)
        yield Cut(tuple((share,) for share in shares))
        if min(shares) > 1:
            yield Cut(tuple(tuple(even(share, 2)) for share in shares))
        return
    yield Cut((tuple(even(num_examples, 2)),))
    if num_examples % 4 == 0:
        yield Cut((tuple(even(num_examples, 4)),))
    if num_examples > 2:
        yield Cut((tuple(_ragged(num_examples)),))
    if num_examples <= MOST_ONE_BY_ONE:
        yield Cut(((1,) * num_examples,))


def even(number: int, parts: int) -> list[int]:
    """Return a number as a sum of parts that differ by one at the most.

    >>> even(10, 4)
    [3, 3, 2, 2]
    """
    return [number // parts + (index < number % parts) for index in range(parts)]


def _ragged(number: int) -> list[int]:
    """Return sizes of which the last is smaller, as a loader leaves them at the end of an epoch."""
    size = next(size for size in range(-(-number // 3), number) if number % size)
    return [size] * (number // size) + [number % size]


def read_cut(given: Any, num_examples: int) -> Cut:
    """Return a cut as a user writes it: sizes, or the sizes of each worker; InputError where it is none.

    >>> str(read_cut((4, 60), 64)), str(read_cut([(16, 16), (32,)], 64))
    ('4 + 60', '2 x 16 | 32')
    """
    try:
        shares = given if _is_nested(given) else (given,)
        cut = Cut(tuple(tuple(map(_size, share)) for share in shares))
    except TypeError:
        raise InputError(f"cuts: {shown(given)} is no sizes of microbatches, such as (16, 16, 32).") from None
    total = sum(cut_size for share in cut.shares for cut_size in share)
    if total != num_examples:
        raise InputError(f"cuts: {shown(given)} has {total:,} examples and the batch {num_examples:,}: cut all of it.")
    if not all(cut.shares):
        raise InputError(f"cuts: {shown(given)}: some worker has none of the examples: give each at least one.")
    return cut


def _is_nested(given: Any) -> bool:
    return len(given) > 0 and all(hasattr(each, "__len__") for each in given)


def _size(given: Any) -> int:
    size = operator.index(given)
    if size < 1 or isinstance(given, bool):
        raise TypeError
    return size
