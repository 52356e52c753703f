"""Names that are longer than a line of a narrow terminal, folded at the signs that join their parts."""

from __future__ import annotations

import re

INDENT = 4
"""By so much a table indents what it puts below a row."""


def folded(text: str, width: int | None) -> str:
    """Return a text in which every word fits into a line below a row of a table, which breaks it at the spaces.

    A longer word is folded after slashes, and a part of it that is still too long after hyphens, underscores, dots
    and commas. `width` is the terminal's; None leaves the text as it is.

    >>> folded("paper:lm1b/transformer_shallow/momentum", width=29)
    'paper:lm1b/ transformer_shallow/ momentum'
    >>> folded("paper:lm1b/transformer_shallow/momentum", width=80)
    'paper:lm1b/transformer_shallow/momentum'
    """
    if width is None:
        return text
    room = max(1, width - INDENT)
    return " ".join(_folded_word(word, room) for word in text.split(" "))


def _folded_word(word: str, room: int) -> str:
    if len(word) <= room:
        return word
    parts = re.findall(r"[^/]*/|[^/]+", word)
    pieces = [piece for part in parts for piece in ([part] if len(part) <= room else _pieces(part))]
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + len(piece) <= room:
            lines[-1] += piece
        else:
            lines.append(piece)
    return " ".join(lines)


def _pieces(part: str) -> list[str]:
    return re.findall(r"[^-_.,]*[-_.,]+|[^-_.,]+", part)
