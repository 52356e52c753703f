"""How the command line ends: an exit code, and at the most one line for whatever happened."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType
from typing import Any, NoReturn

from batchlab.cli.outputs import drop, warn
from batchlab.errors import BatchlabError, InputError, Interrupted, shown

DEBUG_VARIABLE = "BATCHLAB_DEBUG"
INTERRUPTED = "Interrupted; no study was training."
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _State:
    """How far the end is."""

    is_interrupted = False
    is_ending = False


@contextmanager
def handled() -> Iterator[None]:
    """Have the first Ctrl-C, SIGTERM or SIGHUP raise KeyboardInterrupt, and the next one end the process at once."""
    _State.is_interrupted = _State.is_ending = False
    hook = sys.unraisablehook
    sys.unraisablehook = _unraisable
    is_ours = threading.current_thread() is threading.main_thread()  # no other may handle signals
    before = {number: signal.getsignal(number) for number in _SIGNALS if is_ours}
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:  # as under nohup
                signal.signal(number, _interrupt)
        yield
    except KeyboardInterrupt:
        leave()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
        _ignore_at_exit()


def exit_code(run: Callable[[], int]) -> int:
    """Return the exit code of a run, or that of its error once that has been told in one line."""
    try:
        code = run()
        sys.stdout.flush()
        return code
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        _State.is_ending = True
        if _is_debugging() and not isinstance(error, KeyboardInterrupt | BrokenPipeError):
            raise
        return _told(error)
    finally:
        _State.is_ending = True


def leave() -> NoReturn:
    """End the process here and now; a lab loses nothing by it but what came after its last checkpoints."""
    with suppress(OSError):
        os.write(2, f"batchlab: {INTERRUPTED}\n".encode())
    os._exit(Interrupted.exit_code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _State.is_ending:
        return
    if _State.is_interrupted:
        leave()
    _State.is_interrupted = True
    raise KeyboardInterrupt


def _unraisable(details: Any) -> None:
    """End where the interrupt was raised in a place that cannot pass it on, such as the end of an object's life."""
    if issubclass(details.exc_type, KeyboardInterrupt):
        leave()
    sys.__unraisablehook__(details)


@cache
def _ignore_at_exit() -> None:
    """Have nothing disturb the last moments of the process."""
    for number in _SIGNALS:
        atexit.register(signal.signal, number, signal.SIG_IGN)


def _is_debugging() -> bool:
    return bool(os.environ.get(DEBUG_VARIABLE))


def _told(error: BaseException) -> int:
    """Say what happened, and return its exit code."""
    if isinstance(error, BrokenPipeError):  # the reader of our output, `head` say, has seen enough
        drop(1)
        return 0
    if isinstance(error, BatchlabError):
        warn(_one_line(error))
        return error.exit_code
    if (
        isinstance(error, KeyboardInterrupt) or _State.is_interrupted
    ):  # an import that is interrupted raises ImportError
        warn(INTERRUPTED)
        # Python remembers an interrupt that passed through a text it was executing, as imports do, and would end by
        # SIGINT whatever the exit code; to execute another one makes it forget.
        exec("")
        return Interrupted.exit_code
    if isinstance(error, OSError):  # the system refused: a full disk behind our output, a folder that may not be read
        warn(_one_line(error))
        drop(1)
        return InputError.exit_code
    warn(_unexpected(error))
    return BatchlabError.exit_code


def _one_line(error: Exception) -> str:
    """Return the message; of several lines, such as a trial's traceback, the first and the last."""
    first, *others = (str(error) or type(error).__name__).splitlines()
    return f"{first} {others[-1].strip()} (`batchlab --debug` shows all)" if others else first


def _unexpected(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. Close other programs, or take something smaller."
    what = f"{type(error).__name__}: {shown(str(error), 200)}"
    return f"This should not happen ({what}). Please report it with what `batchlab --debug` shows."
