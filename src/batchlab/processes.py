"""Other processes: those of ours that must not outlive us, and those that may be gone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from pathlib import Path

NO_GUARD = (
    'The script that starts the run has no `if __name__ == "__main__":` guard: worker processes import the script and '
    "would start the run again. Put what starts it below that line."
)


SAFE_PATH = "PYTHONSAFEPATH"
"""By which Python leaves the working folder out of `sys.path`; any text switches that on, so it can say whose it is."""

_OURS = "batchlab"

CGROUP = Path("/sys/fs/cgroup/cpu.max")
"""The time on processors that a container may take in a period, where the system says so: two numbers, or `max`."""


def usable_cores() -> int:
    """Return on how many processors this process may run, whatever the machine has: less in a job or a container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        share, period = CGROUP.read_text().split()
    except (OSError, ValueError):
        return cores
    return min(cores, max(1, int(share) // int(period))) if share.isdecimal() and period.isdecimal() else cores


def end_if_imported_by_worker() -> None:
    """End this process at once if it is a worker that imports its parent's script: the parent reads why."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # so does multiprocessing itself ask
        print(NO_GUARD, file=sys.stderr, flush=True)
        os._exit(1)


def die_with_parent() -> None:
    """Let this process end when its parent has, even if that was killed and could tell nobody."""
    threading.Thread(target=_watch_parent, daemon=True).start()


@contextmanager
def may_have_children() -> Iterator[None]:
    """Let a worker, which is daemonic, start processes of its own: those must die with their parent.

    `multiprocessing` forbids it because they would be left behind where a worker is terminated.
    """
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    before = config.get("daemon", False)
    config["daemon"] = False
    try:
        yield
    finally:
        config["daemon"] = before


@contextmanager
def undisturbed_by_signals() -> Iterator[None]:
    """Keep signals from processes that start meanwhile, for as long as they do not ask for them."""
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)


@contextmanager
def undisturbed_by_folder() -> Iterator[None]:
    """Let Python processes that start meanwhile look for modules where this one does, and not in the working folder.

    They would look there first until they have taken over our `sys.path`: a file `random.py` in it would be theirs.
    """
    if SAFE_PATH in os.environ:
        yield
        return
    os.environ[SAFE_PATH] = _OURS
    try:
        yield
    finally:
        os.environ.pop(SAFE_PATH, None)


def take_back_safe_path() -> None:
    """In a process that `undisturbed_by_folder` has started: what it starts itself, a user's program, is as ever."""
    if os.environ.get(SAFE_PATH) == _OURS:
        del os.environ[SAFE_PATH]


def start_tracker() -> None:
    """Start the process that tidies shared memory away; the end of a session, SIGHUP, is not to end it before us."""
    with undisturbed_by_signals(), undisturbed_by_folder():
        resource_tracker.ensure_running()


def is_running(process: int) -> bool:
    """Return whether a process of this number lives on this machine."""
    try:
        os.kill(process, 0)
    except PermissionError:  # somebody else's
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


@dataclass(frozen=True)
class Place:
    """Which of several processes that torchrun has started one is."""

    rank: int
    size: int
    local_rank: int
    """Among those of its machine."""


def torchrun_place() -> Place | None:
    """Return which process of torchrun this one is; None where it was started otherwise, or is the only one."""
    values = [os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")]
    if "TORCHELASTIC_RUN_ID" not in os.environ or not all(value.isdecimal() for value in values):
        return None
    place = Place(*(int(value) for value in values))
    return place if place.size > 1 else None


def is_serving() -> bool:
    """Return whether this process follows another one of torchrun, which speaks for both."""
    place = torchrun_place()
    return place is not None and place.rank > 0


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
