"""Words on a figure, broken into lines that fit."""

from __future__ import annotations

import re


def wrapped(text: str, width: int) -> str:
    """Return `text` in lines of `width` letters at the most; a workload's name may be broken after a slash.

    >>> print(wrapped("lm1b/transformer_base/nesterov_momentum is not in this lab", 24))
    lm1b/transformer_base/
    nesterov_momentum is not
    in this lab
    """
    lines = [""]
    for piece in re.findall(r"\S+?/|\S+\s*", text):
        if lines[-1] and len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)
