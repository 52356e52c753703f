"""The hub: holds one namespace for each worker, joined by a shaped link, until its parent closes its standard input.

Started as `python -m batchlab.link.hub_process`, with the link on the command line. It answers with one line of JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

from batchlab.link.link import Link
from batchlab.link.namespace import inside, make_namespace
from batchlab.link.relay import open_tun, relay

INTERFACE = "link0"
"""The device of every worker, each in its own namespace."""

COMMANDS = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
"""Where `ip` and `tc` are, which the path of a user may not name."""

NETWORK = "198.18"
"""Addresses that are set aside for measurements, RFC 2544."""

_PACKET = 1500
"""Bytes of a packet, as on an Ethernet."""

_BURST_SECONDS = 0.5e-3
"""What `tbf` lets pass at once after a pause: short messages are shaped too, and a timer may be that late."""

_QUEUE_BYTES = 256 << 20
"""Far more than TCP has under way: no packet is lost."""

_QUEUE_PACKETS = 100_000


@dataclass(frozen=True)
class Joined:
    """What the hub tells once all is there."""

    namespaces: tuple[str, ...]
    """Paths of files by which a process enters, one for each worker."""

    addresses: tuple[str, ...]
    interface: str
    means: str
    """Who delays and who shapes, in a few words."""


class Refused(Exception):
    """The system refused something: what, and why."""


def main() -> None:
    """Build the link that the command line asks for, tell of it, and hold it."""
    link, count = Link.parse(sys.argv[1]), int(sys.argv[2])
    try:
        joined, devices = build(link, count)
    except (Refused, OSError) as error:
        print(json.dumps({"refused": str(error)}), flush=True)
        return
    print(json.dumps(asdict(joined)), flush=True)
    if devices:
        _take_precedence()
    relay(devices, link.latency or 0.0, until=sys.stdin.fileno())


def build(link: Link, count: int) -> tuple[Joined, dict[bytes, int]]:
    """Return the link, and the devices that have to be relayed; none where the kernel does it all."""
    namespaces = [make_namespace() for _ in range(count)]
    addresses = [f"{NETWORK}.{rank // 250}.{rank % 250 + 1}" for rank in range(count)]
    is_relayed = link.latency is not None and not _has_netem()
    devices = _tuns(namespaces, addresses) if is_relayed else {}
    if not is_relayed:
        _bridge(namespaces, link)
    for number, address in zip(namespaces, addresses, strict=True):
        with inside(number):
            _settle(address, link)
    paths = tuple(f"/proc/{os.getpid()}/fd/{number}" for number in namespaces)
    return Joined(paths, tuple(addresses), INTERFACE, _means(link, is_relayed)), devices


def _tuns(namespaces: Sequence[int], addresses: Sequence[str]) -> dict[bytes, int]:
    devices = {}
    for number, address in zip(namespaces, addresses, strict=True):
        with inside(number):
            devices[socket.inet_aton(address)] = open_tun(INTERFACE)
    return devices


def _bridge(namespaces: Sequence[int], link: Link) -> None:
    """Join the namespaces by a bridge in one more, which delays what leaves it where the kernel can."""
    with inside(make_namespace()):
        _ip("link add bridge0 type bridge", "link set bridge0 up")
        for rank, number in enumerate(namespaces):
            port, its = f"port{rank}", f"/proc/{os.getpid()}/fd/{number}"
            _ip(
                f"link add {port} type veth peer name {INTERFACE} netns {its}",
                f"link set {port} master bridge0 up",
            )
            if link.latency is not None:
                _tc(f"qdisc add dev {port} root netem delay {1e6 * link.latency:.0f}us limit {_QUEUE_PACKETS}")


def _settle(address: str, link: Link) -> None:
    """Give the device of this namespace its address and its bandwidth."""
    _set("ipv6/conf/all/disable_ipv6", "1")  # whose greetings would be in the way
    _set("ipv4/tcp_slow_start_after_idle", "0")  # a pause between two measurements is no reason to begin slowly
    burst = _burst(link)
    _ip(
        "link set lo up",
        f"link set {INTERFACE} mtu {_PACKET} txqueuelen {_QUEUE_PACKETS // 10} gso_max_size {burst // 2} up",
        f"address add {address}/16 dev {INTERFACE}",
    )
    if link.bandwidth is not None:
        rate = f"{8 * link.bandwidth:.0f}bit"
        _tc(f"qdisc add dev {INTERFACE} root tbf rate {rate} burst {burst} limit {_QUEUE_BYTES}")


def _burst(link: Link) -> int:
    """Return the bytes that pass at once: two packets at least, and as many as TCP cuts for the device."""
    if link.bandwidth is None:
        return 65536
    return min(65536, max(2 * _PACKET + 200, round(_BURST_SECONDS * link.bandwidth)))


def _has_netem() -> bool:
    number = make_namespace()
    try:
        with inside(number):
            _tc("qdisc add dev lo root netem delay 1ms")
    except Refused:
        return False
    finally:
        os.close(number)
    return True


def _means(link: Link, is_relayed: bool) -> str:
    delay = "latency by batchlab's relay, as this kernel has no netem" if is_relayed else "latency by netem"
    parts = [delay if link.latency is not None else "", "bandwidth by tbf" if link.bandwidth is not None else ""]
    return ", ".join(part for part in parts if part)


def _set(name: str, value: str) -> None:
    with suppress(OSError), open(f"/proc/sys/net/{name}", "w") as file:  # read-only in some containers
        file.write(value)


def _ip(*commands: str) -> None:
    _run(["ip", "-batch", "-"], "\n".join(commands))


def _tc(command: str) -> None:
    _run(["tc", *command.split()])


def _run(command: list[str], text: str = "") -> None:
    """Run a command in the namespace of this thread."""
    found = find_command(command[0])
    if found is None:
        raise Refused(f"there is no command `{command[0]}`")
    done = subprocess.run([found, *command[1:]], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        asked = f"ip {'; '.join(text.splitlines())}" if text else " ".join(command)
        raise Refused(f"`{asked}` says: {said[0].rstrip('.')}")


def find_command(name: str) -> str | None:
    """Return where a command of iproute2 is; None where it is not."""
    return shutil.which(name, path=COMMANDS)


def _take_precedence() -> None:
    """Let the relay run as soon as a packet is due, before whatever else the machine computes."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


if __name__ == "__main__":
    main()
