"""What a link is asked to be."""

from __future__ import annotations

import pytest

from batchlab.errors import InputError
from batchlab.link.link import Link


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("latency=2ms,bandwidth=100mbit", Link(0.002, 1.25e7)),
        ("bandwidth=1gbit", Link(None, 1.25e8)),
        (" latency = 500us ", Link(0.0005, None)),
        ("bandwidth=2.5Gbit,latency=1s", Link(1.0, 3.125e8)),
    ],
)
def test_a_link_is_read_and_written(text, link):
    assert Link.parse(text) == link
    assert Link.parse(str(link)) == link


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write it as latency=2ms,bandwidth=100mbit"),
        ("fast", "write it as latency=2ms,bandwidth=100mbit"),
        ("latency=2", "give a number with its unit"),
        ("latency=0ms", "more than no time"),
        ("latency=-2ms", "give a number with its unit"),
        ("latency=11s", "from 1us to 10s"),
        ("latency=0.0001us", "from 1us to 10s"),
        ("bandwidth=100", "give a number with its unit"),
        ("bandwidth=100mb", "such as 100mbit"),
        ("bandwidth=1e3e3mbit", "above 0"),
        ("bandwidth=1kbit", "from 1mbit to 100gbit"),
        ("bandwidth=1tbit", "from 1mbit to 100gbit"),
        ("latency=1ms,latency=2ms", "latency is there twice"),
        ("loss=1%", 'Unknown name "loss"'),
        ("latency=2ms,", "write it as"),
    ],
)
def test_nonsense_is_refused_in_a_line(text, words):
    with pytest.raises(InputError) as caught:
        Link.parse(text)

    assert words in str(caught.value)
    assert str(caught.value).startswith("--link")
    assert "\n" not in str(caught.value)
