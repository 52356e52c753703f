"""Loading processes: they read what will be asked for next, in order, while the training goes on."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from typing import Any

import torch
from torch.utils.data import DataLoader

from batchlab.errors import TrainerError, TrialError
from batchlab.own.reader import Failure, Reader, Request
from batchlab.processes import die_with_parent, may_have_children

AHEAD = 2
"""Requests that each loading process works on or has met already."""


def read(reader: Reader, requests: Iterable[Request], loaders: int) -> Iterator[Any]:
    """Yield what is read for each request, in order, by so many processes; without any, in this one.

    Requests are drawn ahead of their time and may go on for ever. The processes end with the iterator.
    """
    is_apart = loaders > 0 and sys.platform == "linux"
    for batch in _read_apart(reader, requests, loaders) if is_apart else map(reader.__getitem__, requests):
        if isinstance(batch, Failure):
            raise TrainerError(batch.reason)
        yield batch


def _read_apart(reader: Reader, requests: Iterable[Request], loaders: int) -> Iterator[Any]:
    batches = _begin(reader, requests, loaders)
    processes: list[BaseProcess] = batches._workers  # type: ignore[attr-defined]
    # Also where this process ends before the iterator does: it would ask them to end, and wait for ever.
    end = Finalize(None, _kill, (processes,), exitpriority=1)
    try:
        yield from batches
    except (RuntimeError, OSError, EOFError) as error:  # a process was killed
        raise TrialError(
            f"A loading process ended unexpectedly ({' '.join(str(error).split())[:200]}): run the same command again "
            "to go on, with fewer `loaders` if memory is short."
        ) from None
    finally:
        end()


def _kill(processes: Iterable[BaseProcess]) -> None:
    """End loading processes, which write nothing: asked to, they may take seconds."""
    for process in processes:
        process.kill()


def _begin(reader: Reader, requests: Iterable[Request], loaders: int) -> Iterator[Any]:
    """Start the processes: copies of this one, so that whatever was made here, a lambda say, is there."""
    loader: DataLoader[Any] = DataLoader(
        reader,  # type: ignore[arg-type]
        sampler=requests,
        batch_size=None,
        num_workers=loaders,
        prefetch_factor=AHEAD,
        collate_fn=_as_it_is,
        worker_init_fn=_begin_life,
        multiprocessing_context="fork",
        generator=torch.Generator(),  # else it would draw from the one that dropout draws from
    )
    with may_have_children(), _same_handler(), warnings.catch_warnings():
        # They neither train nor hold locks: what a copied process must not do beside threads, they do not.
        warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
        return iter(loader)


@contextmanager
def _same_handler() -> Iterator[None]:
    """Keep the handler of SIGCHLD: the DataLoader's raises wherever the training is when a loading process dies.

    Without it, that is noticed where the next batch is waited for.
    """
    before = signal.getsignal(signal.SIGCHLD)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGCHLD, before)


def _as_it_is(batch: Any) -> Any:
    return batch


def _begin_life(number: int) -> None:
    """In a loading process: a signal to the whole group is for the one that trains, and it ends with that one."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    die_with_parent()
