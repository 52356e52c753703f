"""The records of a study's trials as JSON: what trials.json holds, and measurements.parquet carries of it."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from batchlab.core.trial import TIMES, Trial
from batchlab.store.seal import damaged

_TRIALS = TypeAdapter(list[Trial])


def trials_json(trials: list[Trial], *, with_times: bool = True) -> bytes:
    """Return the records of trials as JSON; without times, what `Trial.without_times` leaves of them."""
    left_out: dict[str, set[str]] = {} if with_times else {"__all__": {*TIMES}}
    return _TRIALS.dump_json(trials, exclude=left_out, exclude_none=True, indent=1)


def parse_trials(content: bytes, path: Path) -> list[Trial]:
    """Return the trials that a file lists; DamagedError where it is not the JSON of trials."""
    try:
        return _TRIALS.validate_json(content)
    except ValidationError as error:
        detail = error.errors()[0]
        place = ".".join(str(part) for part in detail["loc"]) or "its start"
        raise damaged(path, f"{detail['msg']} at {place}") from None
