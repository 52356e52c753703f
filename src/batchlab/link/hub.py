"""The link as the rest of batchlab sees it: made for a while, and gone afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from batchlab.core.limits import MOST_WORKERS
from batchlab.errors import InputError, TrialError
from batchlab.link.hub_process import Joined, find_command
from batchlab.link.link import PLACE, Link


@contextmanager
def joined(link: Link, num_workers: int) -> Iterator[Joined]:
    """Have a network namespace for each worker, joined by a link, for as long as this lasts.

    InputError, in one line, where this system or this user cannot: it needs Linux, root, iproute2 and a kernel with
    namespaces. Nothing is left of it afterwards, even if this process is killed.
    """
    check_link()
    assert 1 <= num_workers <= MOST_WORKERS
    hub = _start(link, num_workers)
    try:
        yield _told(hub)
    finally:
        assert hub.stdin is not None and hub.stdout is not None
        hub.stdin.close()
        hub.stdout.close()
        hub.wait()


def check_held(made: Joined) -> None:
    """Raise TrialError where the process that holds a link is gone: nothing comes through any more."""
    if not os.path.lexists(made.namespaces[0]):
        raise TrialError(f"{PLACE}: the process that holds the link has ended. Measure again.")


def check_link() -> None:
    """Raise InputError where no link can be made, as far as that is known beforehand."""
    if not sys.platform.startswith("linux"):
        raise InputError(f"{PLACE} makes network namespaces, which {sys.platform} does not have: leave it out.")
    if os.geteuid() != 0:
        raise InputError(f"{PLACE} makes network namespaces, which only root may: use sudo, or leave it out.")
    missing = [name for name in ("ip", "tc") if find_command(name) is None]
    if missing:
        raise InputError(f"{PLACE} needs the command `{missing[0]}`: install iproute2, or leave it out.")


def _start(link: Link, num_workers: int) -> subprocess.Popen[str]:
    """Start the hub, in a session of its own: what the terminal signals is not for it."""
    source = Path(__file__).parents[2]
    paths = os.pathsep.join(filter(None, (str(source), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "batchlab.link.hub_process", str(link), str(num_workers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
        text=True,
        start_new_session=True,
    )


def _told(hub: subprocess.Popen[str]) -> Joined:
    assert hub.stdout is not None
    line = hub.stdout.readline()
    if not line:
        raise InputError(f"{PLACE}: the process that holds the link has ended, with exit code {hub.wait()}.")
    told = json.loads(line)
    if "refused" in told:
        raise InputError(f"{PLACE}: this system cannot make such a link: {told['refused']}. Leave it out.")
    namespaces, addresses = tuple(told["namespaces"]), tuple(told["addresses"])
    return Joined(namespaces, addresses, told["interface"], told["means"])
