"""Protocol: how a study was searched, and so what may be asked of it."""

from __future__ import annotations

from typing import Literal

from batchlab.core.value import Value


class Protocol(Value):
    """How the trials of a study were trained, and where its points came from."""

    kind: Literal["race", "full", "imported"]
    """`race`: trials ended soon after the winner. `full`: each trained to its budget. `imported`: not run here."""

    race_factor: float | None = None
    """In a race the others trained on to this multiple of the winner's steps."""

    max_steps: int | None = None
    """The budget of a trial; None where it is not known, for an imported study."""

    is_grid: bool = False
    """Whether the points are a grid: no random draw, so nothing can be said of other draws."""

    is_closed_form: bool = False
    """Whether curves are exact expectations (the noisy quadratic model): there is no chance, so no interval."""


IMPORTED = Protocol(kind="imported")
"""All that is known of a study that was not run here."""
