from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from batchlab.plots import steps_curve_data, steps_curve_figure, svg_text
from batchlab.report.inline_svg import inline_svg


def test_ids_are_prefixed_and_every_reference_finds_its_id(make_summary):
    element = inline_svg(svg_text(steps_curve_figure(steps_curve_data(make_summary()))), "fig-7", "label")
    ids = re.findall(r'\bid="([^"]+)"', element)
    references = re.findall(r'href="#([^"]+)"', element) + re.findall(r"url\(#([^)]+)\)", element)

    assert len(ids) == len(set(ids))
    assert {True} == {name.startswith("fig-7-") for name in ids}
    assert set(references) <= set(ids)
    assert references


def test_the_element_is_well_formed_and_names_no_address(make_summary):
    element = inline_svg(svg_text(steps_curve_figure(steps_curve_data(make_summary()))), "a", "label")

    ET.fromstring(element)
    assert "http" not in element
    assert "<!--" not in element


def test_colours_follow_the_page():
    svg = '<?xml?><svg viewBox="0 0 10 20"><g style="fill: #1a1a1a"/><g style="fill: #ffffff"/></svg>'
    element = inline_svg(svg, "a", 'say "<hi>"')

    assert '<g style="fill: currentColor"/><g style="fill: var(--paper)"/>' in element
    assert 'viewBox="0 0 10 20" role="img" aria-label="say &#34;&lt;hi&gt;&#34;"' in element
