"""Namespaces joined by a link: what comes through, what is refused, and that nothing is left."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from batchlab.errors import InputError, TrialError
from batchlab.link import hub, hub_process
from batchlab.link.hub import joined
from batchlab.link.link import Link
from batchlab.link.namespace import enter
from batchlab.link.probe import probe
from batchlab.processes import is_running

SHAPED = Link(latency=0.005, bandwidth=1.25e7)


@pytest.mark.usefixtures("can_link")
def test_a_link_is_as_slow_as_it_is_asked_to_be():
    """A busy machine may make it slower yet: how closely it is met is measured by benchmarks/link_recovery.py."""
    with joined(SHAPED, 2) as made:
        seen = probe(made)

    assert seen.round_trip > 0.0099  # twice 5 ms
    assert 0 < seen.throughput < 1.25e7
    assert "bandwidth by tbf" in made.means
    assert "latency by netem" in made.means or "latency by batchlab's relay" in made.means


@pytest.mark.usefixtures("can_link")
def test_a_bandwidth_alone_is_shaped_by_the_kernel():
    with joined(Link(bandwidth=2.5e6), 2) as made:
        seen = probe(made)

    assert 0 < seen.throughput < 2.5e6
    assert made.means == "bandwidth by tbf"


@pytest.mark.usefixtures("can_link")
@pytest.mark.parametrize("link", [Link(latency=0.001), Link(bandwidth=1e8)])
def test_every_worker_reaches_every_other_in_order_and_nobody_else(link):
    with joined(link, 3) as made, ThreadPoolExecutor(6) as threads:
        listeners = list(threads.map(lambda rank: _listen(made, rank), range(3)))
        readers = [threads.submit(_collect, listener) for listener in listeners]
        for rank in range(3):
            threads.submit(_greet, made, rank, [other.getsockname() for other in listeners])
        heard = [reader.result(30) for reader in readers]
        outside = threads.submit(_reach, made.namespaces[0], ("192.0.2.1", 80)).result()

    words = [bytes([rank, 99 - rank]) * 150_000 for rank in range(3)]
    assert heard == [[words[1], words[2]], [words[0], words[2]], [words[0], words[1]]]
    assert isinstance(outside, OSError)  # no way leads out


def _listen(made, rank):
    enter(made.namespaces[rank])
    return socket.create_server((made.addresses[rank], 0))


def _collect(listener):
    found = []
    with listener:
        for _ in range(2):
            connection, _ = listener.accept()
            with connection:
                found.append(b"".join(iter(lambda connection=connection: connection.recv(1 << 16), b"")))
    return sorted(found)


def _greet(made, rank, others):
    enter(made.namespaces[rank])
    for place, address in enumerate(others):
        if place != rank:
            with socket.create_connection(address, timeout=30) as connection:
                connection.sendall(bytes([rank, 99 - rank]) * 150_000)


def _reach(namespace, address):
    enter(namespace)
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError as error:
        return error
    return None


@pytest.mark.usefixtures("can_link")
def test_links_at_the_same_time_do_not_meet():
    with joined(SHAPED, 2) as one, joined(SHAPED, 2) as other:
        assert one.addresses == other.addresses
        assert probe(one).round_trip == pytest.approx(probe(other).round_trip, rel=0.2)


def _hub_of(made) -> int:
    return int(made.namespaces[0].split("/")[2])


@pytest.mark.usefixtures("can_link")
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_nothing_is_left_after_an_error(error):
    with pytest.raises(error), joined(SHAPED, 2) as made:
        assert is_running(_hub_of(made))
        raise error

    assert not is_running(_hub_of(made))
    assert not os.path.exists(made.namespaces[0])


@pytest.mark.usefixtures("can_link")
def test_a_link_without_its_hub_is_noticed():
    with joined(SHAPED, 2) as made:
        hub.check_held(made)
        os.kill(_hub_of(made), signal.SIGKILL)
        os.waitid(os.P_PID, _hub_of(made), os.WEXITED | os.WNOWAIT)

        with pytest.raises(TrialError, match="the process that holds the link has ended"):
            hub.check_held(made)


HOLDER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
from batchlab.link.hub import joined
from batchlab.link.link import Link
with joined(Link.parse("latency=1ms"), 2) as made:
    print(made.namespaces[0], flush=True)
    sys.stdin.read()
"""


@pytest.mark.usefixtures("can_link")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_a_process_that_is_killed(number):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as holder:
        process = int(holder.stdout.readline().split(b"/")[2])
        holder.send_signal(number)
        holder.wait()

    deadline = time.monotonic() + 10
    while is_running(process) and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    assert not is_running(process)


@pytest.mark.usefixtures("can_link")
def test_what_the_kernel_refuses_is_said(monkeypatch, tmp_path):
    command = tmp_path / "ip"
    command.write_text("#!/bin/sh\necho 'Error: Unknown device type.' >&2\nexit 2\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(hub_process, "COMMANDS", str(tmp_path))

    with pytest.raises(hub_process.Refused, match="type bridge; .* says: Error: Unknown device type"):
        hub_process.build(Link(bandwidth=1e7), 2)


def test_a_hub_that_refuses_is_one_line():
    words = '{"refused": "unshare: Operation not permitted"}'
    with (
        subprocess.Popen([sys.executable, "-c", f"print('{words}')"], stdout=subprocess.PIPE, text=True) as process,
        pytest.raises(InputError, match="cannot make such a link: unshare: Operation not permitted. Leave it out"),
    ):
        hub._told(process)


def test_a_hub_that_dies_is_one_line():
    with (
        subprocess.Popen([sys.executable, "-c", "exit(3)"], stdout=subprocess.PIPE, text=True) as process,
        pytest.raises(InputError, match="has ended, with exit code 3"),
    ):
        hub._told(process)


def test_only_root_may(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(InputError, match="--link makes network namespaces, which only root may: use sudo"):
        hub.check_link()


def test_iproute2_is_asked_for(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(hub_process, "COMMANDS", "/nowhere")

    with pytest.raises(InputError, match="--link needs the command `ip`: install iproute2"):
        hub.check_link()


def test_other_systems_are_refused(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")

    with pytest.raises(InputError, match="which darwin does not have"):
        hub.check_link()
