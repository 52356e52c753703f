"""A figure inside a page: its colours follow the page, its ids keep out of the way of other figures."""

from __future__ import annotations

import re

from markupsafe import Markup

from batchlab.plots import style


def inline_svg(svg: str, prefix: str, label: str) -> Markup:
    """Return an SVG file of ours as an element for HTML, described to screen readers by `label`.

    Ids and the references to them begin with `prefix`, because all figures of a page share one name space.
    Ink becomes the colour of the surrounding text and paper the variable `--paper`, for dark pages.
    """
    body = svg[svg.index(">", svg.index("<svg")) + 1 :]
    body = re.sub(r"<!--.*?-->|<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'\b(?:xlink:)?href="#', f'href="#{prefix}-', body)
    body = body.replace("url(#", f"url(#{prefix}-")
    body = body.replace(style.INK, "currentColor").replace(style.PAPER, "var(--paper)")
    return _opening(svg, label) + Markup(body.strip())


def _opening(svg: str, label: str) -> Markup:
    found = re.search(r'viewBox="(0 0 (\S+) \S+)"', svg)
    assert found is not None, "matplotlib always writes a viewBox"
    # In CSS pixels, of which a point has 4/3: never so small that letters blur, nor larger than they need be.
    width = float(found[2])
    size = f"min-width: {1.1 * width:.0f}px; max-width: {1.6 * width:.0f}px"
    return Markup('<svg viewBox="{}" role="img" aria-label="{}" style="{}">').format(found[1], label, size)
