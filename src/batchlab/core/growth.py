"""Growth: what of a sweep may become more after it has been run, and what must stay."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

from batchlab.core.confirmation import Confirm
from batchlab.core.study import GROWS as STUDY_GROWS
from batchlab.core.study import Study
from batchlab.core.sweep import COSTS_ONLY, SearchPlan, Sweep, differences
from batchlab.core.workload import OwnLoop, Workload


def _limit(limit: float | None) -> float:
    return math.inf if limit is None else limit


def _confirms_more(old: Confirm | None, new: Confirm | None) -> bool:
    if old is None or new is None:
        return old is None
    return new.seeds >= old.seeds and new.points >= old.points


_IS_MORE: dict[str, Callable[[SearchPlan, SearchPlan], bool]] = {
    "trials": lambda old, new: new.trials >= old.trials,
    "batch_sizes": lambda old, new: set(new.batch_sizes) >= set(old.batch_sizes),
    "race_factor": lambda old, new: new.race_factor >= old.race_factor,
    "max_steps": lambda old, new: _limit(new.max_steps) >= _limit(old.max_steps),
    "max_examples": lambda old, new: _limit(new.max_examples) >= _limit(old.max_examples),
    "max_attempts": lambda old, new: new.attempts >= old.attempts,
    "confirm": lambda old, new: _confirms_more(old.confirm, new.confirm),
    "protocol": lambda old, new: new.protocol in (old.protocol, "full"),
}
"""What of `[sweep]` may become more, and whether a value is as much as an older one, or more. Labs store a digest that
leaves these names out: see `fixed_digest`."""

_DEFAULT_SAMPLER_VERSIONS = frozenset({2, 3})
"""Versions that were the default once. A digest leaves defaults out, and of labs from before a new one it still does:
whoever changes a default of a spec names the old one here, or every lab that was made with it is another sweep's."""

GROWS = (
    f"What can grow: sweep.{', '.join(name for name in _IS_MORE if name != 'protocol')},"
    ' and protocol from "race" to "full".'
)


def continued(sweep: Sweep, stored: Sweep) -> Sweep:
    """Return a spec that is run again, with what it leaves open as it was: the sampler's version and `confirm`."""
    given = sweep.search.model_fields_set
    kept = {name: getattr(stored.search, name) for name in ("sampler_version", "confirm") if name not in given}
    return sweep.model_copy(update={"search": sweep.search.model_copy(update=kept)})


def not_grown(old: Sweep, new: Sweep) -> list[str]:
    """Return what of `new` is neither as in `old` nor more of it, a line each.

    >>> old = Sweep.parse({"name": "a", "workload": {"dataset": "digits", "model": "fc_8", "optimizer": "sgd"},
    ...     "sweep": {"batch_sizes": [8], "trials": 4, "max_steps": 9, "goal": "val/loss < 1"}, "search_space": {}}, "")
    >>> more = old.model_copy(update={"search": old.search.model_copy(update={"trials": 8})})
    >>> not_grown(old, more), not_grown(more, old)
    ([], ['sweep.trials: 8 -> 4'])
    """
    shrunk = differences(_fixed(old, old), _fixed(new, old))
    return shrunk or [
        line for size in old.search.batch_sizes for line in _study_lines(old.study(size), new.study(size))
    ]


def fixed_digest(sweep: Sweep) -> str:
    """Return a short text that all specs share that one sweep can grow through, and no other has."""
    plain = sweep.model_dump(mode="json", exclude_defaults=True, exclude={"at"})
    plain["sweep"] = {name: value for name, value in plain["sweep"].items() if name not in _IS_MORE}
    if sweep.search.sampler_version in _DEFAULT_SAMPLER_VERSIONS:
        plain["sweep"].pop("sampler_version", None)
    for name in COSTS_ONLY - {"keep_states"}:
        plain.get("engine", {}).pop(name, None)
    if not plain.get("engine", True):
        del plain["engine"]
    plain.get("engine", {}).pop("keep_states", None)  # labs that keep states have the digest of an empty table
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


def _fixed(sweep: Sweep, old: Sweep) -> dict[str, Any]:
    """Return a spec as plain data in which all that has grown since `old` is as it was there."""
    plain, before = sweep.plain(), old.plain()
    fixed = {"max_steps", "max_examples"} if _knows_budget(old.workload) else set()
    grown = [name for name, is_more in _IS_MORE.items() if name not in fixed and is_more(old.search, sweep.search)]
    plain["sweep"] |= {name: before["sweep"].get(name) for name in grown}
    same = {name: before["engine"].get(name) for name in COSTS_ONLY}
    plain["at"], plain["engine"] = before.get("at"), {**plain["engine"], **same}
    return plain


def _knows_budget(workload: Workload) -> bool:
    """Return whether trials depend on their budget: a program that is told it may decay something over it."""
    return isinstance(workload, OwnLoop) and "{max_steps}" in (workload.command or "")


def study_changes(old: Study, new: Study) -> list[str]:
    """Return what of `new` is neither as in `old` nor more of it, a line each."""
    same = {name: getattr(old, name) for name in STUDY_GROWS if _is_more_of_study(name, old, new)}
    return differences(old.plain(), new.model_copy(update=same).plain())


def _is_more_of_study(name: str, old: Study, new: Study) -> bool:
    """Return whether one of the values that may grow is as much as it was, or more."""
    if name == "max_steps" and _knows_budget(old.workload):
        return False
    if name == "confirm":
        return _confirms_more(old.confirm, new.confirm)
    return name == "confirm_within" or _limit(getattr(new, name)) >= _limit(getattr(old, name))


def _study_lines(old: Study, new: Study) -> list[str]:
    """Return what tables `[at.BATCH_SIZE]` have changed of a study but its limits, and limits that are nearer."""
    same = {name: getattr(old, name) for name in STUDY_GROWS - {"max_steps"}}
    if new.max_steps >= old.max_steps and not _knows_budget(old.workload):
        same["max_steps"] = old.max_steps
    lines = differences(old.plain(), new.model_copy(update=same).plain())
    return [f"at batch size {old.batch_size}: {line}" for line in lines]
