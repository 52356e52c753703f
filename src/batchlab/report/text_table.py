"""A table as plain text, no wider than it may be: what does not fit beside goes below, and no number is broken."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

_GAP = "  "
_KEPT = "\N{NO-BREAK SPACE}"


def text_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    left: Collection[int] | None = None,
    key: int = 0,
    groups: Collection[int] = (),
) -> str:
    """Return the table in lines of at most `width` characters; None means as wide as it is.

    Columns stand in as many blocks, one below the other, as the width asks for; the column `key` opens each. A
    text that is wider than all there is goes on in the next line. Columns are right-aligned but those in `left`, the
    last where None. `groups` are the columns that begin something new: a block ends before one that does not fit.

    >>> print(text_table(["B", "steps", "best"], [["1", "1,234", "rate 0.1"], ["16", "80", "rate 0.3"]], width=12))
     B  steps
     1  1,234
    16     80
    <BLANKLINE>
     B  best
     1  rate 0.1
    16  rate 0.3
    """
    left = {len(header) - 1} if left is None else left
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n\n".join(_block(lines, columns, widths, left, width) for columns in _blocks(widths, key, width, groups))


def _blocks(widths: Sequence[int], key: int, width: int | None, groups: Collection[int]) -> list[list[int]]:
    """Return the columns of each block, in their order."""
    if width is None:
        return [list(range(len(widths)))]
    blocks = [[key]]
    for column in range(len(widths)):
        if column == key:
            continue
        together = _group_from(column, len(widths), groups) if column in groups else [column]
        if len(blocks[-1]) > 1 and _total([*blocks[-1], *together], widths) > width:
            blocks.append([key])
        blocks[-1].append(column)
    # The key need not stand at the front of the first block: there columns keep the order that was given.
    return [sorted(blocks[0]), *blocks[1:]]


def _group_from(column: int, num_columns: int, groups: Collection[int]) -> list[int]:
    end = min((other for other in groups if other > column), default=num_columns)
    return list(range(column, end))


def _total(columns: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[column] for column in columns) + len(_GAP) * (len(columns) - 1)


def _block(
    lines: Sequence[Sequence[str]],
    columns: Sequence[int],
    widths: Sequence[int],
    left: Collection[int],
    width: int | None,
) -> str:
    spare = 0 if width is None else max(0, _total(columns, widths) - width)
    *most, last = columns
    room = max(widths[last] - spare, 1)
    printed = []
    for line in lines:
        first, *others = _wrapped(line[last], room)
        cells = [_aligned(line[column], widths[column], column in left) for column in most]
        printed.append(_GAP.join([*cells, _aligned(first, room, last in left)]).rstrip())
        indent = " " * (_total(columns, widths) - widths[last])
        printed += [f"{indent}{other}" for other in others]
    return "\n".join(printed)


def _aligned(cell: str, width: int, is_left: bool) -> str:
    return cell.ljust(width) if is_left else cell.rjust(width)


def _wrapped(cell: str, width: int) -> list[str]:
    """Return a text in lines of that width, broken after commas, else between words; a longer word stays whole."""
    if len(cell) <= width:
        return [cell]
    parts = cell.split(", ")
    kept = ", ".join(part.replace(" ", _KEPT) if len(part) < width else part for part in parts)
    lines = textwrap.wrap(kept, width, break_long_words=False, break_on_hyphens=False) or [""]
    return [line.replace(_KEPT, " ") for line in lines]
