from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from importlib import resources

from batchlab.plots import steps_curve_data, steps_curve_figure, svg_text
from batchlab.report import inline_svg as inline_svg_module
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
    svg = '<?xml?><svg viewBox="0 0 10 20"><g style="fill: #1a1a1a"/><g style="fill: #ffffff; stroke: #0072b2"/></svg>'
    element = inline_svg(svg, "a", 'say "<hi>"')

    assert '<g style="fill: currentColor"/><g style="fill: var(--paper); stroke: var(--blue)"/>' in element
    assert 'viewBox="0 0 10 20" role="img" aria-label="say &#34;&lt;hi&gt;&#34;"' in element


def test_every_colour_of_the_page_has_a_value_by_day_and_by_night():
    css = resources.files("batchlab.report").joinpath("templates/report.css").read_text()
    named = {name[4:-1] for name in inline_svg_module._COLOURS.values() if name.startswith("var(")}

    for name in named:
        assert css.count(f"{name}: #") == 3  # light, dark, print


def test_a_figure_shrinks_with_the_page():
    """10 points are 16 pixels at the most; there is no least width."""
    assert 'style="max-width: 16px"' in inline_svg('<svg viewBox="0 0 10 20"></svg>', "a", "label")
