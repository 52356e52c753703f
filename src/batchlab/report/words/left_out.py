"""What an import could not take in."""

from __future__ import annotations

from batchlab.analysis.text import count


def broken_text(number: int) -> str:
    """Return how many studies and trials are broken, with their verb.

    >>> broken_text(1), broken_text(1200)
    ('1 broken study or trial was', '1,200 broken studies or trials were')
    """
    return "1 broken study or trial was" if number == 1 else f"{count(number)} broken studies or trials were"


def left_out_text(number: int, of: str = "its archive") -> str:
    """Return the sentence for what an import could not take in."""
    what, verb = broken_text(number).rsplit(" ", 1)
    return f"{what} of {of} {verb} left out of the lab; its rejected.json has the reasons."
