"""Blocks as HTML: the one place that knows the templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

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


def with_code(text: str) -> Markup:
    """Return a sentence with what stands between backticks set as code.

    >>> with_code("Run `batchlab run a<b`.")
    Markup('Run <code>batchlab run a&lt;b</code>.')
    """
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def breakable(name: str) -> Markup:
    """Return the name of a workload that may be broken after its strokes.

    >>> breakable("digits/fc_128/sgd")
    Markup('digits/<wbr>fc_128/<wbr>sgd')
    """
    return Markup("/<wbr>").join(name.split("/"))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("batchlab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(with_code=with_code, breakable=breakable)
    return environment
