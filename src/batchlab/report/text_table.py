"""A table as plain text, no wider than it may be: what does not fit beside goes below, and no number is broken."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass

_GAP = "  "
_INDENT = " " * 4
_KEPT = "\N{NO-BREAK SPACE}"


def text_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    left: Collection[int] | None = None,
    key: int | None = 0,
    groups: Collection[int] = (),
) -> str:
    """Return the table in lines of at most `width` characters; None means as wide as it is.

    Columns that do not fit stand in blocks below, each opened by the column `key`; where that is None, each row goes on
    in the lines below its first. A text that is wider than all there is is broken between words. Columns are
    right-aligned but those in `left`, the last where None. `groups` are the columns that begin something new: a block
    ends before one that does not fit.

    >>> print(text_table(["B", "steps", "best"], [["1", "1,234", "rate 0.1"], ["16", "80", "rate 0.3"]], width=12))
     B  steps
     1  1,234
    16     80
    <BLANKLINE>
     B  best
     1  rate 0.1
    16  rate 0.3
    """
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    layout = _Layout(widths, {len(header) - 1} if left is None else left, width)
    blocks = layout.blocks(key, groups)
    if key is None:
        return "\n".join("\n".join(layout.stacked(line, blocks)) for line in lines)
    parts = [[text for line in lines for text in layout.row(line, columns)] for columns in blocks]
    return "\n\n".join("\n".join(part) for part in parts)


@dataclass(frozen=True)
class _Layout:
    """How wide each column is, which are left-aligned, and how wide a line may be."""

    widths: Sequence[int]
    left: Collection[int]
    width: int | None

    def blocks(self, key: int | None, groups: Collection[int]) -> list[list[int]]:
        """Return the columns of each block, in their order."""
        every = range(len(self.widths))
        if self.width is None:
            return [list(every)]
        opening = [] if key is None else [key]
        blocks = [[*opening]]
        for column in (column for column in every if column != key):
            together = self._group_from(column, groups) if column in groups else [column]
            if len(blocks[-1]) > len(opening) and self._total([*blocks[-1], *together]) > self.width:
                blocks.append([*opening])
            blocks[-1].append(column)
        # The key need not stand at the front of the first block: there columns keep the order that was given.
        return [sorted(blocks[0]), *blocks[1:]]

    def stacked(self, line: Sequence[str], blocks: Sequence[Sequence[int]]) -> list[str]:
        """Return one row with the columns of later blocks below it, indented and as they are."""
        below = [_GAP.join(line[column] for column in columns) for columns in blocks[1:]]
        room = None if self.width is None else max(1, self.width - len(_INDENT))
        wrapped = [text for each in below for text in ([each] if room is None else _wrapped(each, room))]
        return [*self.row(line, blocks[0]), *(f"{_INDENT}{text}" for text in wrapped)]

    def row(self, line: Sequence[str], columns: Sequence[int]) -> list[str]:
        """Return some columns of one row: one line, or several where its last cell has to be broken."""
        *most, last = columns
        total = self._total(columns)
        room = max(self.widths[last] - (0 if self.width is None else max(0, total - self.width)), 1)
        first, *others = _wrapped(line[last], room)
        cells = [*(self._aligned(line[column], column) for column in most), first.rjust(room)]
        if last in self.left:
            cells[-1] = first
        indent = " " * (total - self.widths[last])
        return [_GAP.join(cells).rstrip(), *(f"{indent}{other}" for other in others)]

    def _aligned(self, cell: str, column: int) -> str:
        return cell.ljust(self.widths[column]) if column in self.left else cell.rjust(self.widths[column])

    def _group_from(self, column: int, groups: Collection[int]) -> list[int]:
        end = min((other for other in groups if other > column), default=len(self.widths))
        return list(range(column, end))

    def _total(self, columns: Sequence[int]) -> int:
        return sum(self.widths[column] for column in columns) + len(_GAP) * (len(columns) - 1)


def _wrapped(cell: str, width: int) -> list[str]:
    """Return a text in lines of that width, broken after commas, else between words; a longer word stays whole."""
    if len(cell) <= width:
        return [cell]
    parts = cell.split(", ")
    kept = ", ".join(part.replace(" ", _KEPT) if len(part) < width else part for part in parts)
    lines = textwrap.wrap(kept, width, break_long_words=False, break_on_hyphens=False) or [""]
    return [line.replace(_KEPT, " ") for line in lines]
