"""What a page is made of: sections of blocks. A section knows its words and numbers, the template how a block looks.

A new kind of block is a class here and a file of that name in `templates/blocks/`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from markupsafe import Markup


@dataclass(frozen=True)
class Paragraph:
    """A few sentences."""

    template: ClassVar[str] = "paragraph"
    text: str
    role: Literal["goal", "answer", "protocol"] | None = None
    """What it is to the reader: the answer is set larger, goal and protocol in grey."""


@dataclass(frozen=True)
class Warnings:
    """What to know before trusting the numbers, a sentence each."""

    template: ClassVar[str] = "warnings"
    sentences: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Terms with their values."""

    template: ClassVar[str] = "facts"
    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells under a header; a wide one scrolls by itself."""

    template: ClassVar[str] = "table"
    name: str
    """Its class in the page's style."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[int] = ()
    """The columns of numbers, from 0; they are set to the right and never broken."""

    muted: Collection[int] = ()
    """The rows that hold no answer, from 0; they are set in grey."""

    groups: Collection[int] = ()
    """The columns that begin something new, from 0: where lines are short the table is cut before them."""

    caption: str | None = None


@dataclass(frozen=True)
class Picture:
    """A figure with its caption, drawn twice: a page shows the one that its width has room for."""

    template: ClassVar[str] = "picture"
    wide: Markup
    narrow: Markup
    """For a phone."""

    caption: str


@dataclass(frozen=True)
class Code:
    """Text as a file holds it."""

    template: ClassVar[str] = "code"
    text: str


Block = Paragraph | Warnings | Facts | Table | Picture | Code


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it; an empty title has no heading."""

    title: str
    blocks: tuple[Block, ...]
