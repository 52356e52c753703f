"""A figure inside a page: its colours follow the page, its ids keep out of the way of other figures."""

from __future__ import annotations

import re

from markupsafe import Markup

import batchlab.plots.style as style

_COLOURS = {
    style.INK: "currentColor",
    style.PAPER: "var(--paper)",
    style.BLUE: "var(--blue)",
    style.VERMILION: "var(--vermilion)",
    style.GREEN: "var(--green)",
    style.ORANGE: "var(--orange)",
    style.PURPLE: "var(--purple)",
}
"""What the page calls the colours of figures: on a dark page they are lighter, so that bands and bars stay in sight."""


def inline_svg(svg: str, prefix: str, label: str) -> Markup:
    """Return an SVG file of ours as an element for HTML, described to screen readers by `label`.

    Ids and the references to them begin with `prefix`, because all figures of a page share one name space.
    Colours become those of the page: ink that of the surrounding text, the others variables of its style.
    """
    body = svg[svg.index(">", svg.index("<svg")) + 1 :]
    body = re.sub(r"<!--.*?-->|<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'\b(?:xlink:)?href="#', f'href="#{prefix}-', body)
    body = body.replace("url(#", f"url(#{prefix}-")
    for colour, name in _COLOURS.items():
        body = body.replace(colour.lower(), name)
    return _opening(svg, label) + Markup(body.strip())


def _opening(svg: str, label: str) -> Markup:
    found = re.search(r'viewBox="(0 0 (\S+) \S+)"', svg)
    assert found is not None, "matplotlib always writes a viewBox"
    # In CSS pixels, of which a point has 4/3: no larger than letters need be. It shrinks with the page, uncut.
    size = f"max-width: {1.6 * float(found[2]):.0f}px"
    return Markup('<svg viewBox="{}" role="img" aria-label="{}" style="{}">').format(found[1], label, size)
