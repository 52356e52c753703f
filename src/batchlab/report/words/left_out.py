"""What an import could not take in."""

from __future__ import annotations

from batchlab.analysis.text import count


def left_out_text(number: int, of: str = "its archive") -> str:
    """Return the sentence for what an import could not take in."""
    what = "1 broken study or trial" if number == 1 else f"{count(number)} broken studies or trials"
    return f"{what} of {of} {'was' if number == 1 else 'were'} left out of the lab; its rejected.json has the reasons."
