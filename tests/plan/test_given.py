"""Numbers that a user gives: what is read, and the one line for what is not."""

from __future__ import annotations

import pytest

from batchlab.errors import InputError
from batchlab.plan.given import given_deadline, given_steps, given_throughput


def test_steps_are_read():
    curve = given_steps(" e_min = 5.12e4 , s_min=100")

    assert (curve.s_min, curve.e_min, curve.b_crit) == (100.0, 51_200.0, 512.0)


def test_throughput_is_read_with_and_without_units():
    for text in ("t0=0.0186,tau=1381", "t0=18.6ms,tau=1381", "t0=18600us,tau=1.381e3"):
        fit = given_throughput(text).fit
        assert (fit.t0, fit.tau) == (pytest.approx(0.0186), pytest.approx(1381))
        assert fit.all_reduce is None


def test_a_link_is_read():
    fit = given_throughput("t0=1ms,tau=1000,latency=2ms,bandwidth=100mbit,gradient=25MB").fit

    assert fit.all_reduce is not None
    assert fit.all_reduce.latency == 0.002
    assert fit.all_reduce.transfer_seconds == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("text", "seconds"), [("5m", 300), ("90s", 90), ("1.5h", 5400), ("2d", 172_800), ("50 ms", 0.05)]
)
def test_deadlines_are_read(text, seconds):
    assert given_deadline(text) == seconds


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("s_min=100", "e_min is missing"),
        ("e_min=100", "s_min is missing"),
        ("", "write it as s_min=...,e_min=..."),
        ("100,51200", "write it as s_min=...,e_min=..."),
        ("s_min=-1,e_min=51200", "give a number above 0"),
        ("s_min=0,e_min=51200", "give a number above 0"),
        ("s_min=nan,e_min=51200", "give a number above 0"),
        ("s_min=inf,e_min=51200", "give a number above 0"),
        ("s_min=1e400,e_min=51200", "from 1e-15 to 1e+15"),
        ("s_min=1e-320,e_min=51200", "from 1e-15 to 1e+15"),
        ("s_min=0.5,e_min=51200", "s_min is below 1"),
        ("s_min=,e_min=51200", "give a number above 0"),
        ("s_min=1,s_min=2,e_min=3", "s_min is there twice"),
        ("s_mim=1,e_min=3", 'Did you mean "s_min"'),
    ],
)
def test_steps_that_are_none_are_refused_in_a_line(text, words):
    with pytest.raises(InputError) as refused:
        given_steps(text)

    assert words in str(refused.value)
    assert str(refused.value).startswith("--steps")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("t0=0.1", "tau is missing"),
        ("t0=-0.1,tau=5", "give a number"),
        ("t0=0.1,tau=0", "give a number above 0"),
        ("t0=1parsec,tau=5", "give a number with its unit"),
        ("t0=0.1,tau=5,latency=1ms", "add bandwidth, gradient"),
        ("t0=0.1,tau=5,latency=1ms,bandwidth=100,gradient=1mb", "such as 100mbit"),
        ("t0=0.1,tau=5,latency=1ms,bandwidth=100mbit,gradient=1", "such as 100mb"),
        ("t0=0.1,tau=5,speed=7", "Unknown name"),
    ],
)
def test_throughput_that_is_none_is_refused_in_a_line(text, words):
    with pytest.raises(InputError) as refused:
        given_throughput(text)

    assert words in str(refused.value)
    assert str(refused.value).startswith("--throughput")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0s", "more than no time"),
        ("0", "such as 0s or 0m"),
        ("300", "such as 300s or 300m"),
        ("-5m", "give a number with its unit"),
        ("5 weeks", "give a number with its unit"),
        ("m", "give a number with its unit"),
        ("", "give a number with its unit"),
        ("nanm", "give a number with its unit"),
        ("9999999999999d", "less than three hundred years"),
    ],
)
def test_deadlines_that_are_none_are_refused_in_a_line(text, words):
    with pytest.raises(InputError) as refused:
        given_deadline(text)

    assert words in str(refused.value)
    assert str(refused.value).startswith("--deadline")
