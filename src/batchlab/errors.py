"""Everything batchlab raises on purpose.

::

    BatchlabError                     exit code 1: the run failed
    +-- InputError (ValueError)       exit code 2: something given to us is wrong
    |   +-- SpecError                 a spec file, or one value of it
    |   +-- TrainerError              a user's own trainer does not do what the engine counts on
    |   +-- DataError                 a dataset file: missing, truncated, wrong checksum
    |   +-- LabError                  a lab, or one file of it
    |       +-- LabLockedError        another runner holds the lab
    |       +-- LabLostError          exit code 1: the lab's lock was taken from a runner
    |       +-- UnreadableError       the system refused to read: permission denied, an I/O error
    |       +-- NewerLabError         a newer batchlab wrote the lab
    |       +-- DamagedError          exit code 1: a file that is not as it was written
    |           +-- MisnamedError     a sweep in a folder of another name
    |           +-- OlderSpecError    a study that is more of its sweep than the sweep's spec asks for
    +-- StorageError (OSError)        exit code 2: the disk refused (full, read-only)
    +-- TrialError (RuntimeError)     exit code 1: a trial raised inside a worker process
    |   +-- LostOthersError           one of several workers of a trial hears no more of the others
    +-- Interrupted                   exit code 75: stopped by a signal, can be resumed

A diverged trial, an unmet goal and a spent budget are outcomes, not errors: see `core.trial`.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable


class BatchlabError(Exception):
    """Base of every error that the command line turns into one line and an exit code."""

    exit_code = 1


class InputError(BatchlabError, ValueError):
    """A value given by the user is wrong; the message holds the value, the place and the way out."""

    exit_code = 2


class SpecError(InputError):
    """A spec file, or a value in it, cannot be used."""


class TrainerError(InputError):
    """A user's own trainer, or a program of it, does not keep the contract in `engine.base`."""


class DataError(InputError):
    """A dataset file is missing, truncated or not the file it should be."""


class LabError(InputError):
    """A lab, or one of its files, cannot be read."""


class LabLockedError(LabError):
    """Another runner holds the lab's lock."""


class LabLostError(LabError):
    """The lock of a lab was removed or replaced under the process that held it."""

    exit_code = 1


class UnreadableError(LabError):
    """The system refused to read something of a lab; whether it is sound nobody can tell."""


class NewerLabError(LabError):
    """A newer batchlab wrote the lab: this one can neither read nor repair it."""


class DamagedError(LabError):
    """A file of a lab is not as it was written: damaged, changed, exchanged or gone."""

    exit_code = 1


class MisnamedError(DamagedError):
    """A sweep lies in a folder of another name: it was exchanged or renamed."""


class OlderSpecError(DamagedError):
    """A study asks for more than its sweep's spec: one of the two is older, and the study waits for the larger spec."""


VERIFY = "See what is sound with `batchlab verify`."
"""The way out of a damaged lab: it never makes anything worse."""


class StorageError(BatchlabError, OSError):
    """The disk refused a write; what was there before is untouched."""

    exit_code = 2


class TrialError(BatchlabError, RuntimeError):
    """A trial raised an exception in its worker process (divergence does not: it is an outcome)."""


class LostOthersError(TrialError):
    """One of several workers of a trial hears no more of the others: one has died, or the way to it is cut."""


class Interrupted(BatchlabError):
    """A signal ended the run; the same command goes on from there."""

    exit_code = 75


MOST_SHOWN = 100
"""Characters of a value from outside that a message quotes at the most."""


def shown(value: object, most: int = MOST_SHOWN) -> str:
    """Return a value from outside as a message may quote it: no control characters, nothing unprintable, not endless.

    >>> shown("plain"), shown("two\\nlines"), shown("x" * 1000, most=8)
    ('plain', 'two\\\\nlines', 'xxxxxxxx... (1,000 characters)')
    """
    text = value if isinstance(value, str) else spelled(value)
    return plain(text) if len(text) <= most else f"{plain(text[:most])}... ({len(text):,} characters)"


def plain(text: str) -> str:
    """Return a text as one line that can be printed anywhere: whatever steers a terminal is escaped.

    >>> plain("two" + chr(10) + "lines"), plain(chr(27) + "[31m")
    ('two\\\\nlines', '\\\\x1b[31m')
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def spelled(value: object) -> str:
    """Return a value as Python writes it, whatever it is.

    >>> spelled("8"), spelled(8), spelled(16**5000)
    ("'8'", '8', 'a number of more than 4,300 digits')
    """
    try:
        return repr(value)
    except ValueError:  # Python writes no longer numbers
        return f"a number of more than {sys.get_int_max_str_digits():,} digits"
    except RecursionError:
        return "a value nested too deeply to be shown"


MOST_NAMES = 20
"""Of more known names, an error lists only the closest."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the sentence for a name that is not known: the closest one if there is one, then all (of many, a few).

    >>> unknown_name("optimizer", "sdg", ["sgd", "momentum"])
    'Unknown optimizer "sdg". Did you mean "sgd"? Known: momentum, sgd.'
    >>> unknown_name("figure", "pie", ["paper-10", "paper-2"])
    'Unknown figure "pie". Known: paper-2, paper-10.'
    """
    known, begun = sorted(known, key=_in_order), name[:MOST_SHOWN]
    close = difflib.get_close_matches(begun, known, n=1)
    hint = f' Did you mean "{shown(close[0])}"?' if close else ""
    listed = known if len(known) <= MOST_NAMES else difflib.get_close_matches(begun, known, n=5, cutoff=0)
    more = f" and {len(known) - len(listed)} more" if len(listed) < len(known) else ""
    return f'Unknown {kind} "{shown(name)}".{hint} Known: {", ".join(map(shown, listed))}{more}.'


def _in_order(name: str) -> list[tuple[int, str]]:
    """Return what sorts names with numbers as one counts: paper-2 before paper-10."""
    parts = enumerate(re.split(r"([0-9]+)", name))
    return [(len(part.lstrip("0")) if place % 2 else 0, part) for place, part in parts]
