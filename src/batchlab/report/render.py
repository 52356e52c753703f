"""Blocks as HTML: the one place that knows the templates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from batchlab.report.blocks import Block


def render(template: str, **values: Any) -> str:
    """Return a page of `templates/` filled with values; what is not marked as HTML is escaped."""
    return _environment().get_template(template).render(**values)


def render_blocks(blocks: Sequence[Block]) -> Markup:
    """Return blocks as HTML, one after the other.

    >>> from batchlab.report.blocks import Paragraph
    >>> render_blocks([Paragraph("steps < 100")])
    Markup('<p>steps &lt; 100</p>\\n')
    """
    return Markup("".join(render(f"blocks/{block.template}.html", block=block) for block in blocks))


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("batchlab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
